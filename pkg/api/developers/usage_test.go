package developers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/value"
)

func TestTheUsageOfAnApplication(t *testing.T) {
	s := newService(t) // on 2026-11-21
	app := s.create("Shop")
	path := apps + "/" + app.ID.String() + "/usage"
	limiter := ratelimit.New(s.Table, s.Time)
	for range 3 {
		if _, err := limiter.Admit(t.Context(), 1, ratelimit.Subject{ID: app.ID.String(), Limit: 100}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		query       string
		days        int
		first, last string
	}{
		{"", 30, "2026-10-23", "2026-11-21"},
		{"?to=2026-11-20", 30, "2026-10-22", "2026-11-20"},
		{"?to=2026-08-25", 2, "2026-08-24", "2026-08-25"},
		{"?from=2026-08-24", 90, "2026-08-24", "2026-11-21"},
		{"?from=2026-11-21&to=2026-11-21", 1, "2026-11-21", "2026-11-21"},
	} {
		t.Run(test.query, func(t *testing.T) {
			s.t = t
			got := decode[developers.ApplicationUsage](t, s.want(200, "GET", path+test.query, "")).Data
			if len(got) != test.days || got[0].Date != test.first || got[len(got)-1].Date != test.last {
				t.Fatalf("got %d days from %s to %s, want %d from %s to %s", len(got), got[0].Date, got[len(got)-1].Date, test.days, test.first, test.last)
			}
			for _, day := range got {
				if want := map[bool]int64{true: 3}[day.Date == "2026-11-21"]; day.Requests != want {
					t.Errorf("%s: got %d requests, want %d", day.Date, day.Requests, want)
				}
			}
		})
	}
	for _, test := range []struct{ query, want string }{
		{"?from=2026-08-23", `"field":"from","in":"query","code":"out_of_range","message":"must be a day from 2026-08-24 to today, 2026-11-21"`},
		{"?to=2026-11-22", `"field":"to","in":"query","code":"out_of_range"`},
		{"?from=2026-11-21&to=2026-11-20", `"field":"from","in":"query","code":"out_of_range","message":"must not be after to, 2026-11-20"`},
		{"?from=2026-11-21T00:00:00Z", `"field":"from","in":"query","code":"invalid_format"`},
		{"?from=2026-02-30", `"field":"from","in":"query","code":"invalid_format"`},
	} {
		t.Run(test.query, func(t *testing.T) {
			s.t = t
			if r := s.want(400, "GET", path+test.query, ""); !strings.Contains(r.Body, test.want) {
				t.Errorf("got %s, want %s", r.Body, test.want)
			}
		})
	}
	t.Run("another organization's", func(t *testing.T) {
		s.t, s.as = t, person(value.NewID(), auth.Owner)
		absent := s.want(404, "GET", apps+"/"+value.NewID().String()+"/usage", "")
		if foreign := s.want(404, "GET", path, ""); foreign.Body != absent.Body {
			t.Errorf("got %s, want %s", foreign.Body, absent.Body)
		}
	})
	t.Run("without the scope", func(t *testing.T) {
		s.t = t
		s.as.Scopes = nil
		s.want(http.StatusForbidden, "GET", path, "")
	})
}
