package dynamo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// Of many users' grants a list reads those that it shows, and they change and go in
// both lists at once.
func TestListsOfGrantsReadTheirOwnAlone(t *testing.T) {
	client, name := dynamotest.Client(t)
	m := faults.NewMeter()
	table := dynamo.New(dynamodb.New(client.Options(), m.Measure), name, time.Now)
	org, other, now := value.NewID(), value.NewID(), value.TimeOf(time.Now())
	shop, till, user := value.NewID(), value.NewID(), value.NewID()
	grant := func(org, app, user value.ID) *account.Family {
		t.Helper()
		f, _ := account.NewFamily(account.Grant{OrganizationID: org, ApplicationID: app, UserID: user, Scopes: account.GrantScopes()}, account.GrantLifetime, now)
		must(t, table.CreateGrant(t.Context(), f))
		return f
	}
	for range 60 {
		grant(org, shop, value.NewID())
	}
	grant(other, shop, user) // the same ids in another organization
	first, second := grant(org, shop, user), grant(org, till, user)
	list := func(what string, read func() ([]account.Grant, error), want ...*account.Family) {
		t.Helper()
		m.Reset()
		found, err := read()
		units := m.Total().Reads
		same := slices.EqualFunc(found, want, func(g account.Grant, f *account.Family) bool {
			return g.ID == f.ID && g.OrganizationID == org && g.ExpiresAt == f.ExpiresAt
		})
		if err != nil || !same || units > 1 {
			t.Errorf("%s: %d grants for %.1f read units, %v; want %d for 1", what, len(found), units, err, len(want))
		}
	}
	ofUser := func() ([]account.Grant, error) { return table.GrantsOf(t.Context(), org, user) }
	ofTill := func() ([]account.Grant, error) { return table.Grants(t.Context(), org, till) }
	byApplication := []*account.Family{first, second}
	slices.SortFunc(byApplication, func(a, b *account.Family) int { return a.ApplicationID.Compare(b.ApplicationID) })
	list("the user's", ofUser, byApplication...)
	list("the application's", ofTill, second)

	second.ExpiresAt = now.Add(account.GrantLifetime)
	if done, err := table.ReplaceGrant(t.Context(), second); err != nil || !done {
		t.Fatalf("replace: %t, %v", done, err)
	}
	list("the user's after a change", ofUser, byApplication...)
	if done, err := table.DeleteGrant(t.Context(), &second.Grant, &account.AuditEntry{}); err != nil || !done {
		t.Fatalf("delete: %t, %v", done, err)
	}
	if done, err := table.ReplaceGrant(t.Context(), second); err != nil || done {
		t.Errorf("a grant that is gone was replaced: %t, %v", done, err)
	}
	list("the user's after a deletion", ofUser, first)
	list("the application's after a deletion", ofTill)

	for range account.MaxGrants {
		grant(org, till, user)
	}
	f, _ := account.NewFamily(second.Grant, account.GrantLifetime, now)
	if err := table.CreateGrant(t.Context(), f); !fault.Is(err, fault.Conflict) {
		t.Errorf("one more than the limit: %v", err)
	}
	grant(org, till, value.NewID())
}
