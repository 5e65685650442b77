package dynamo_test

import (
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const day = 24 * time.Hour

func TestUsageIsCountedByDays(t *testing.T) {
	client, name := dynamotest.Client(t)
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	now := midnight.Add(-time.Hour)
	clock := func() time.Time { return now }
	table := dynamo.New(client, name, clock)
	s := servicetest.OnTable(t, table, value.NewID())
	other := s.Organization(t)
	e, gone := s.Endpoint(t, "*"), s.Endpoint(t, "*")
	elsewhere := s.OfApplication(s.Application(t))
	foreign := elsewhere.Endpoint(t, "*")

	limiter := ratelimit.New(table, clock)
	request := func(n int) {
		t.Helper()
		for range n {
			d, err := limiter.Admit(t.Context(), 1, ratelimit.Subject{ID: s.App.String(), Limit: 3})
			must(t, err)
			if d.Allowed {
				limiter.ClientError(s.App.String())
			}
		}
	}
	check := func(what string, org, app value.ID, want map[string]account.Usage) {
		t.Helper()
		got, err := table.Usage(t.Context(), org, app, value.TimeOf(midnight.Add(-day)), value.TimeOf(midnight))
		maps.DeleteFunc(got, func(_ string, u account.Usage) bool { return u == account.Usage{} })
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	failure := "timeout"
	count := func(s *servicetest.Service, endpoint value.ID) {
		t.Helper()
		s.Count(t, endpoint, value.TimeOf(now), webhook.Attempt{}, webhook.Attempt{Error: &failure})
	}

	check("at first", s.Org, s.App, map[string]account.Usage{})
	request(5) // the last two are refused, and wait for the next lease
	count(s, e.ID)
	count(s, gone.ID)
	count(elsewhere, foreign.ID)
	const yesterday, today = "2026-11-21", "2026-11-22"
	first := account.Usage{Requests: 3, ClientErrors: 2, Events: 4, Delivered: 2}
	check("on the first day", s.Org, s.App, map[string]account.Usage{yesterday: first})

	now = midnight.Add(time.Hour)
	request(1)
	count(s, e.ID)
	count(s, gone.ID)
	want := map[string]account.Usage{yesterday: first, today: {Requests: 1 + 2, ClientErrors: 1, RateLimited: 2, Events: 4, Delivered: 2}}
	check("on the next day", s.Org, s.App, want)
	check("of another organization", other.Org, s.App, map[string]account.Usage{yesterday: {Requests: 3, ClientErrors: 2}, today: {Requests: 3, ClientErrors: 1, RateLimited: 2}})

	late := window.Window{Version: 1, Head: window.At(midnight.Add(-time.Hour)), Usage: window.Usage{Requests: 99}}
	must(t, table.FinishDay(t.Context(), s.App.String(), late))
	check("after an instance was late to finish the day", s.Org, s.App, want)
	now = midnight.Add(92 * day)
	check("after 90 days", s.Org, s.App, map[string]account.Usage{today: {Events: 4, Delivered: 2}}) // in the live shards, which no day has finished
}

// TestCountingTakesNoWriteUnit holds the writes of leases to the unit that they
// cost without counting, also where each of the buckets is in use.
func TestCountingTakesNoWriteUnit(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	const many = 1_000_000
	w := window.Window{Version: time.Now().UnixMilli(), Head: window.At(time.Now()), Usage: window.Usage{Requests: many * 1440, ClientErrors: many * 1440, RateLimited: many * 1440}}
	for i := range w.Counts {
		w.Counts[i], w.Total = many/window.Buckets, w.Total+many/window.Buckets
	}
	subject := value.NewID().String() + "#" + value.NewID().String()
	if _, written, err := table.ReplaceWindow(t.Context(), subject, 0, w); err != nil || !written {
		t.Fatalf("written %t, %v", written, err)
	}
	_, written, err := table.ExtendWindow(t.Context(), subject, window.Extension{Head: w.Head, Lease: 1, Limit: 2 * many, Usage: w.Usage})
	if err != nil || !written {
		t.Fatalf("written %t, %v", written, err)
	}
	if got := m.Total().Writes; got != 2 {
		t.Errorf("two writes of leases: %.1f write units, want 2\n%v", got, m.Uses())
	}
}
