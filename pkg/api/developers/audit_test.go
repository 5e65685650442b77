package developers_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/developers"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

func TestTheAuditTrailIsFilteredAndOfTheCallersOrganization(t *testing.T) {
	s := newService(t)
	mine, other := s.as.OrganizationID, value.NewID()
	user, application, key := value.NewID(), value.NewID(), value.NewID()
	put := func(org value.ID, action string, actor account.AuditActor, kind string, object value.ID) {
		t.Helper()
		entry := account.NewAuditEntry(action, actor, application, account.AuditObject{Kind: kind, ID: object}, s.Now())
		if err := s.Table.PutAuditEntry(t.Context(), org, entry); err != nil {
			t.Fatal(err)
		}
	}
	person := account.AuditActor{Kind: "user", ID: &user}
	put(mine, "application.updated", account.AuditActor{Kind: "operator"}, "application", application)
	put(mine, "apiKey.created", person, "apiKey", key)
	put(other, "apiKey.revoked", person, "apiKey", key)
	for _, test := range []struct {
		query  string
		as     value.ID
		status int
		want   int // entries
	}{
		{"", mine, http.StatusOK, 2},
		{"", other, http.StatusOK, 1},
		{"?limit=1", mine, http.StatusOK, 1},
		{"?limit=100", mine, http.StatusOK, 2},
		{"?limit=0", mine, http.StatusBadRequest, 0},
		{"?limit=101", mine, http.StatusBadRequest, 0},
		{"?actorId=" + user.String(), mine, http.StatusOK, 1},
		{"?actorId=" + value.NewID().String(), mine, http.StatusOK, 0},
		{"?actorId=operator", mine, http.StatusBadRequest, 0},
		{"?action=apiKey.created", mine, http.StatusOK, 1},
		{"?action=apiKey.made", mine, http.StatusBadRequest, 0},
		{"?objectId=" + key.String(), mine, http.StatusOK, 1},
		{"?objectId=" + application.String(), mine, http.StatusOK, 2},
		{"?from=2026-11-21", mine, http.StatusOK, 2},
		{"?to=2026-11-21", mine, http.StatusOK, 0},
		{"?to=1970-01-01", mine, http.StatusOK, 0},
		{"?from=2026-11-22&to=2026-11-21", mine, http.StatusBadRequest, 0},
		{"?before=" + value.NewID().String() + "&from=2026-11-21&to=2026-11-22", mine, http.StatusOK, 2},
		{"?page=2", mine, http.StatusBadRequest, 0},
	} {
		t.Run(fmt.Sprint(test.query, " ", test.as == mine), func(t *testing.T) {
			s.as.OrganizationID = test.as
			var trail developers.AuditTrail
			if err := json.Unmarshal([]byte(s.want(test.status, "GET", "/developers/audit"+test.query, "").Body), &trail); err != nil && test.status == http.StatusOK {
				t.Fatal(err)
			}
			if len(trail.Data) != test.want {
				t.Errorf("got %+v, want %d entries", trail.Data, test.want)
			}
		})
	}
	s.as.Scopes = auth.DeveloperRole.Scopes()
	s.want(http.StatusForbidden, "GET", "/developers/audit", "")
}
