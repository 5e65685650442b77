package account

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

var (
	org  = value.MustID("018f0000-0000-7000-8000-000000000001")
	user = value.MustID("018f0000-0000-7000-8000-0000000000b1")
)

const now = value.Time(1_795_000_000_000)

func ptr[T any](v T) *T { return &v }

// problems lists field and code of each thing that is wrong, or "ok".
func problems(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Invalid {
		t.Fatalf("got %v, want a fault of kind Invalid", err)
	}
	if len(f.Details) == 0 {
		return f.Code
	}
	var out []string
	for _, d := range f.Details {
		if d.In != fault.InBody || d.Message == "" {
			t.Errorf("detail %+v: want it in the body, with a message", d)
		}
		out = append(out, d.Field+" "+d.Code)
	}
	return strings.Join(out, ", ")
}

// inputs are the bounds that creation and change share.
var inputs = []struct{ body, want string }{
	{`{"name":"` + strings.Repeat("ü", 120) + `"}`, "ok"},
	{`{"name":"` + strings.Repeat("ü", 121) + `"}`, "name out_of_range"},
	{`{"name":"  ` + strings.Repeat("x", 120) + `\n"}`, "ok"},
	{`{"name":"   "}`, "name out_of_range"},
	{`{"name":5}`, "name wrong_type"},
	{`{"name":["x"]}`, "name wrong_type"},
	{`{"name":"a\u0000b"}`, "name invalid_format"},
	{`{"name":"x","nam":"y"}`, "nam unknown"},
	{`{"name":"x","Name":"y"}`, "Name unknown"},
	{`{"name":"x","name":"y"}`, "name duplicate"},
	{`{"name":"x"} {}`, "malformed_json"},
	{`["x"]`, "body wrong_type"},
	{``, "malformed_json"},
	{`{"name":"x","description":"` + strings.Repeat("😀", 2000) + `"}`, "ok"},
	{`{"name":"x","description":"` + strings.Repeat("😀", 2001) + `"}`, "description out_of_range"},
	{`{"name":"x","description":""}`, "ok"},
	{`{"name":"x\ty"}`, "name invalid_format"},
	{`{"name":"x\r\ny"}`, "name invalid_format"},
	{`{"name":"\n x \n"}`, "ok"},
	{`{"name":"x","description":"a\n\tb"}`, "ok"},
	{`{"name":"x","website":"https://example.com"}`, "ok"},
	{`{"name":"x","website":"http://user@example.com/a?b#c"}`, "ok"},
	{`{"name":"x","website":" https://example.com "}`, "ok"},
	{`{"name":"x","website":""}`, "website invalid_format"},
	{`{"name":"x","website":"example.com"}`, "website invalid_format"},
	{`{"name":"x","website":"//example.com"}`, "website invalid_format"},
	{`{"name":"x","website":"https:example.com"}`, "website invalid_format"},
	{`{"name":"x","website":"https://"}`, "website invalid_format"},
	{`{"name":"x","website":"https://:443"}`, "website invalid_format"},
	{`{"name":"x","website":"https://example.com:65535"}`, "ok"},
	{`{"name":"x","website":"https://example.com:65536"}`, "website invalid_format"},
	{`{"name":"x","website":"https://example.com:0"}`, "website invalid_format"},
	{`{"name":"x","website":"javascript:alert(1)"}`, "website invalid_format"},
	{`{"name":"x","website":"https://a]b/"}`, "website invalid_format"},
	{`{"name":"x","website":"https://exa mple.com"}`, "website invalid_format"},
	{`{"name":"x","website":"https://example.com/a b"}`, "website invalid_format"},
	{`{"name":"x","website":"https://example.com/` + strings.Repeat("x", 2048-20) + `"}`, "ok"},
	{`{"name":"x","website":"https://example.com/` + strings.Repeat("x", 2049-20) + `"}`, "website invalid_format"},
	{`{"name":"x","redirectUri":"https://example.com/cb?x=1"}`, "ok"},
	{`{"name":"x","redirectUri":"http://127.0.0.1:3000/cb"}`, "ok"},
	{`{"name":"x","redirectUri":"http://[::1]/cb"}`, "ok"},
	{`{"name":"x","redirectUri":"http://[0:0:0:0:0:0:0:1]/cb"}`, "ok"},
	{`{"name":"x","redirectUri":"http://localhost/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"http://127.0.0.2/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"http://127.0.0.1.example.com/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"http://[::ffff:127.0.0.1]/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"http://example.com/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"https://example.com/cb#f"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"https://example.com/cb#"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"https://me:pw@example.com/cb"}`, "redirectUri invalid_format"},
	{`{"name":"x","redirectUri":"myapp://cb"}`, "redirectUri invalid_format"},
	{`{"name":"","website":"x","redirectUri":"y"}`, "name out_of_range, website invalid_format, redirectUri invalid_format"},
	{`{"name":7,"colour":"red","website":"x"}`, "name wrong_type, colour unknown, website invalid_format"},
	{`{"name":"\u0085","description":[],"website":"x"}`, "name invalid_format, description wrong_type, website invalid_format"},
}

func TestCreationChecksItsFields(t *testing.T) {
	for _, tc := range append(inputs, []struct{ body, want string }{
		{`{}`, "name required"},
		{`{"name":null}`, "name required"},
		{`{"name":"x","description":null,"website":null,"redirectUri":null}`, "ok"},
	}...) {
		_, err := ParseCreateApplication([]byte(tc.body))
		if got := problems(t, err); got != tc.want {
			t.Errorf("create %.200s: got %s, want %s", tc.body, got, tc.want)
		}
	}
}

func TestAChangeChecksItsFields(t *testing.T) {
	for _, tc := range append(inputs, []struct{ body, want string }{
		{`{}`, "ok"},
		{`{"name":null}`, "name not_allowed"},
		{`{"description":null,"website":null,"redirectUri":null}`, "ok"},
		{`{"status":"SUSPENDED"}`, "status unknown"},
	}...) {
		_, err := ParseUpdateApplication([]byte(tc.body))
		if got := problems(t, err); got != tc.want {
			t.Errorf("update %.200s: got %s, want %s", tc.body, got, tc.want)
		}
	}
}

func newTestApplication(t *testing.T) Application {
	t.Helper()
	dto, err := ParseCreateApplication([]byte(`{"name":" Shop ","description":" d ","website":" https://example.com "}`))
	if err != nil {
		t.Fatal(err)
	}
	return NewApplication(org, user, dto, now)
}

func TestAnApplicationsShape(t *testing.T) {
	app := newTestApplication(t)
	body, err := json.Marshal(app.Masked())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"` + app.ID.String() + `","organizationId":"` + org.String() + `","userId":"` + user.String() +
		`","name":"Shop","description":"d","website":"https://example.com","redirectUri":null,"status":"ACTIVE","clientId":"` +
		app.ClientID.String() + `","clientSecret":"cs_****` + app.ClientSecret[len(app.ClientSecret)-4:] +
		`","rateLimit":600,"createdAt":"` + now.String() + `","updatedAt":"` + now.String() + `"}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if app.ClientID[6]>>4 != 4 {
		t.Errorf("clientId %s: want a version 4 UUID", app.ClientID)
	}
	if len(app.ClientSecret) != 43 || !strings.HasPrefix(app.ClientSecret, "cs_") {
		t.Errorf("clientSecret: got %d characters, want cs_ and 40", len(app.ClientSecret))
	}
	if diff := cmp.Diff(app.Masked(), app.Masked().Masked()); diff != "" {
		t.Errorf("masking twice (-once +twice):\n%s", diff)
	}
}

func TestAChangeAppliesWhatIsGiven(t *testing.T) {
	for _, tc := range []struct {
		body    string
		change  func(*Application)
		changed bool
	}{
		{`{}`, func(*Application) {}, false},
		{`{"name":" Shop ","description":"d","website":"https://example.com","redirectUri":null}`, func(*Application) {}, false},
		{`{"name":"New"}`, func(a *Application) { a.Name = "New" }, true},
		{`{"description":null}`, func(a *Application) { a.Description = nil }, true},
		{`{"description":""}`, func(a *Application) { a.Description = ptr("") }, true},
		{`{"website":null,"redirectUri":"https://example.com/cb"}`, func(a *Application) {
			a.Website, a.RedirectURI = nil, ptr("https://example.com/cb")
		}, true},
	} {
		t.Run(tc.body, func(t *testing.T) {
			got := newTestApplication(t)
			want := got
			change, err := ParseUpdateApplication([]byte(tc.body))
			if err != nil {
				t.Fatalf("%v", err)
			}
			// The clock stands still: updatedAt must rise all the same.
			if changed := got.Update(change, now); changed != tc.changed {
				t.Errorf("changed %v, want %v", changed, tc.changed)
			}
			if tc.change(&want); tc.changed {
				want.UpdatedAt++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.body, diff)
			}
		})
	}
}

func TestStatusAndRateLimitChangeOnlyWhenTheyDiffer(t *testing.T) {
	app := newTestApplication(t)
	if app.SetStatus(Active, now+5) || app.UpdatedAt != now {
		t.Error("activating an active application changed it")
	}
	if !app.SetStatus(Suspended, now+5) || app.Status != Suspended || app.UpdatedAt != now+5 {
		t.Errorf("suspending: got %+v", app)
	}
	for _, limit := range []int{0, -1, MaxRateLimit + 1} {
		if _, err := app.SetRateLimit(limit, now+6); !fault.Is(err, fault.Invalid) {
			t.Errorf("rate limit %d: got %v, want a refusal", limit, err)
		}
	}
	if changed, err := app.SetRateLimit(DefaultRateLimit, now+6); changed || err != nil {
		t.Errorf("the same rate limit: got %v, %v, want no change", changed, err)
	}
	for _, limit := range []int{1, MaxRateLimit} {
		if changed, err := app.SetRateLimit(limit, now+6); !changed || err != nil || app.RateLimit != limit {
			t.Errorf("rate limit %d: got %v, %v, %d", limit, changed, err, app.RateLimit)
		}
	}
}
