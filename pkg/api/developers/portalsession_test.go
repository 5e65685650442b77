package developers_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

const sessions = "/developers/portal-sessions"

func sessionOf(app value.ID, minutes int, scopes string) string {
	return fmt.Sprintf(`{"applicationId":%q,"scopes":[%s],"expiresInMinutes":%d}`, app, scopes, minutes)
}

func TestAnOwnerMakesAPortalSession(t *testing.T) {
	s := newService(t)
	s.as.Scopes = auth.ParseScopes("developers:write developers:admin developers:read webhooks:read webhooks:write orders:read records:write")
	app := s.create("Shop")
	body := strings.TrimSuffix(sessionOf(app.ID, 60, `"webhooks:write","webhooks:read","webhooks:read"`), "}") + `,"theme":"dark"}`
	session := decode[developers.PortalSession](t, s.want(201, "POST", sessions, body))
	page, fragment, _ := strings.Cut(session.URL, "#")
	opened, err := url.ParseQuery(fragment)
	if err != nil || page != base+"/portal/embed" || opened.Get("client_id") != app.ClientID.String() || opened.Get("theme") != "dark" || opened.Get("code") == "" {
		t.Errorf("url %s, %v", session.URL, err)
	}
	if want := s.Now().Add(time.Hour); session.ExpiresAt != want {
		t.Errorf("ends %s, want %s", session.ExpiresAt, want)
	}
	listed := s.grants(apps + "/" + app.ID.String() + "/grants")
	want := []account.Grant{{
		ID: session.ID, OrganizationID: s.as.OrganizationID, ApplicationID: app.ID, ApplicationName: "Shop", UserID: s.as.UserID,
		Scopes: []string{"webhooks:read", "webhooks:write"}, EventScopes: &[]string{"orders:read"},
		CreatedAt: s.Now().Add(-time.Millisecond), ExpiresAt: s.Now().Add(time.Minute - time.Millisecond),
	}}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("listed, with the events that its maker reads (-want +got):\n%s", diff)
	}
	s.want(204, "DELETE", apps+"/"+app.ID.String()+"/grants/"+session.ID.String(), "")
}

// What a repetition answered would hold a code again.
func TestAPortalSessionIsNotRepeated(t *testing.T) {
	s := newService(t)
	body := sessionOf(s.create("Shop").ID, 1, `"webhooks:read"`)
	first := s.want(201, "POST", sessions, body, "Idempotency-Key", "1")
	if again := s.want(201, "POST", sessions, body, "Idempotency-Key", "1"); again.Body == first.Body {
		t.Errorf("the same key got %s again", again.Body)
	}
}

func TestWhatAPortalSessionIsNotMadeOf(t *testing.T) {
	s := newService(t)
	app := s.create("Shop").ID
	for _, minutes := range []int{1, account.MaxSessionMinutes} {
		s.want(201, "POST", sessions, sessionOf(app, minutes, `"webhooks:read"`))
	}
	for _, body := range []string{
		sessionOf(app, 0, `"webhooks:read"`), sessionOf(app, account.MaxSessionMinutes+1, `"webhooks:read"`), sessionOf(app, 1, ``),
		sessionOf(app, 1, `"orders:read"`), sessionOf(app, 1, `"developers:read"`), sessionOf(app, 1, `"webhooks:read","records:write"`),
		`{"applicationId":"` + app.String() + `","scopes":["webhooks:read"]}`, `{"scopes":["webhooks:read"],"expiresInMinutes":1}`,
		`{"applicationId":"` + app.String() + `","expiresInMinutes":1}`, `{"applicationId":"x","scopes":["webhooks:read"],"expiresInMinutes":1}`,
		strings.TrimSuffix(sessionOf(app, 1, `"webhooks:read"`), "}") + `,"theme":"pink"}`, `[]`,
	} {
		s.want(400, "POST", sessions, body)
	}
	absent := s.want(404, "POST", sessions, sessionOf(value.NewID(), 1, `"webhooks:read"`))
	owner := s.as
	s.as = person(value.NewID(), auth.Admin)
	if got := s.want(404, "POST", sessions, sessionOf(app, 1, `"webhooks:read"`)); got.Body != absent.Body {
		t.Errorf("another organization's application: got %s, want %s", got.Body, absent.Body)
	}
	for name, change := range map[string]func(*auth.Principal){
		"a developer":            func(p *auth.Principal) { p.Scopes = auth.DeveloperRole.Scopes() },
		"without the scope":      func(p *auth.Principal) { p.Scopes = auth.ParseScopes("developers:admin webhooks:read") },
		"limited to sites":       func(p *auth.Principal) { p.SiteIDs = []value.ID{value.NewID()} },
		"an application's token": func(p *auth.Principal) { p.Kind, p.ApplicationID = auth.KindApplication, app },
		"a portal session itself": func(p *auth.Principal) {
			p.Kind, p.ApplicationID, p.EventScopes = auth.KindApplication, app, auth.Scopes{}
		},
	} {
		s.as = owner
		change(&s.as)
		if got := s.do("POST", sessions, sessionOf(app, 1, `"webhooks:write"`)); got.Status != 403 {
			t.Errorf("%s: got %d %s, want 403", name, got.Status, got.Body)
		}
	}
}

func TestAUserHasAHundredPortalSessionsForAnApplication(t *testing.T) {
	s := newService(t)
	app := s.create("Shop").ID
	s.granted(&s.as, app)
	body := sessionOf(app, 1, `"webhooks:read"`)
	for range account.MaxPortalSessions - 1 {
		s.want(201, "POST", sessions, body)
	}
	last := decode[developers.PortalSession](t, s.want(201, "POST", sessions, body))
	s.want(409, "POST", sessions, body)
	s.want(201, "POST", sessions, sessionOf(s.create("Till").ID, 1, `"webhooks:read"`))
	s.granted(&s.as, app) // which are counted apart
	s.want(204, "DELETE", apps+"/"+app.String()+"/grants/"+last.ID.String(), "")
	s.want(201, "POST", sessions, body)
}
