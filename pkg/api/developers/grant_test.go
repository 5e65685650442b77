package developers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// granted stores a grant of the user to the application.
func (s *service) granted(user *auth.Principal, app value.ID) account.Grant {
	s.t.Helper()
	grant := account.Grant{OrganizationID: user.OrganizationID, ApplicationID: app, UserID: user.UserID, Scopes: []string{"orders:read"}, ApplicationName: "Shop"}
	family, _ := account.NewFamily(grant, account.GrantLifetime, s.Now())
	if err := s.Table.CreateGrant(s.t.Context(), family); err != nil {
		s.t.Fatal(err)
	}
	return family.Grant
}

func (s *service) grants(path string) []account.Grant {
	s.t.Helper()
	return decode[api.Page[account.Grant]](s.t, s.want(200, "GET", path, "")).Data
}

func TestUsersSeeAndRevokeTheirGrantsAndDevelopersThoseToAnApplication(t *testing.T) {
	s := newService(t)
	owner, app, other := s.as, s.create("Shop"), s.create("Till")
	viewer, stranger := person(owner.OrganizationID, auth.Viewer), person(value.NewID(), auth.Owner)
	viewer.SiteIDs = []value.ID{value.NewID()}
	path := apps + "/" + app.ID.String() + "/grants"
	mine, second, theirs := s.granted(&viewer, app.ID), s.granted(&viewer, app.ID), s.granted(&owner, app.ID)
	if diff := cmp.Diff([]account.Grant{theirs, second, mine}, s.grants(path)); diff != "" {
		t.Errorf("to the application, the newest first (-want +got):\n%s", diff)
	}
	if got := s.grants(apps + "/" + other.ID.String() + "/grants"); len(got) != 0 {
		t.Errorf("to another application: %+v", got)
	}
	s.as = stranger
	if got := s.grants("/developers/grants"); len(got) != 0 {
		t.Errorf("of another organization: %+v", got)
	}
	absent := s.want(404, "DELETE", path+"/"+value.NewID().String(), "")
	if got := s.want(404, "DELETE", path+"/"+mine.ID.String(), ""); got.Body != absent.Body {
		t.Errorf("another organization's: got %s, want %s", got.Body, absent.Body)
	}
	s.as = viewer
	if diff := cmp.Diff([]account.Grant{second, mine}, s.grants("/developers/grants")); diff != "" {
		t.Errorf("the user's (-want +got):\n%s", diff)
	}
	if got := s.want(404, "DELETE", path+"/"+theirs.ID.String(), ""); got.Body != absent.Body {
		t.Errorf("another user's: got %s, want %s", got.Body, absent.Body)
	}
	s.want(404, "DELETE", apps+"/"+other.ID.String()+"/grants/"+mine.ID.String(), "")
	s.want(412, "DELETE", path+"/"+mine.ID.String(), "", "If-Match", `"x"`)
	s.want(204, "DELETE", path+"/"+mine.ID.String(), "")
	s.want(404, "DELETE", path+"/"+mine.ID.String(), "")
	s.as = owner
	s.want(204, "DELETE", path+"/"+second.ID.String(), "")
	if diff := cmp.Diff([]account.Grant{theirs}, s.grants(path)); diff != "" {
		t.Errorf("after the revocations (-want +got):\n%s", diff)
	}
}

func TestAnApplicationIsConfidentialUnlessItsOwnerSaysOtherwise(t *testing.T) {
	s := newService(t)
	path := apps + "/" + s.create("Shop").ID.String() + "/client"
	first := s.want(200, "GET", path, "")
	if first.Body != `{"type":"CONFIDENTIAL"}` {
		t.Errorf("a new one: %s", first.Body)
	}
	for _, body := range []string{`{}`, `{"type":null}`, `{"type":"public"}`, `{"type":"PUBLIC","x":1}`, `[]`} {
		s.want(400, "PUT", path, body)
	}
	set := s.want(200, "PUT", path, `{"type":"PUBLIC"}`, "If-Match", first.Header.Get("ETag"))
	if read := s.want(200, "GET", path, ""); read.Body != `{"type":"PUBLIC"}` || read.Header.Get("ETag") != set.Header.Get("ETag") {
		t.Errorf("after the change: %s %v", read.Body, read.Header)
	}
	s.want(412, "PUT", path, `{"type":"CONFIDENTIAL"}`, "If-Match", first.Header.Get("ETag"))
}
