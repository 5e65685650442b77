package dynamo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// trailed stores n entries of an organization, a second apart, of which every
// hundredth is by the actor, and returns their ids, the latest first.
func trailed(t *testing.T, table *dynamo.Table, org, actor value.ID, n int) (all, byActor []value.ID) {
	t.Helper()
	for i := range n {
		by := value.NewID()
		if i%100 == 0 {
			by = actor
		}
		application := value.NewID()
		entry := account.NewAuditEntry("application.updated", account.AuditActor{Kind: "user", ID: &by}, application,
			account.AuditObject{Kind: "application", ID: application}, hookNow.Add(time.Duration(i)*time.Second))
		must(t, table.PutAuditEntry(t.Context(), org, entry))
		all = append(all, entry.ID)
		if by == actor {
			byActor = append(byActor, entry.ID)
		}
	}
	slices.Reverse(all)
	slices.Reverse(byActor)
	return all, byActor
}

func TestAWalkThroughTheAuditTrailMeetsEachEntryOnceTheLatestFirst(t *testing.T) {
	client, name := dynamotest.Client(t)
	now := hookNow.Std()
	table := dynamo.New(client, name, func() time.Time { return now })
	org, actor := value.NewID(), value.NewID()
	all, byActor := trailed(t, table, org, actor, 501)
	trailed(t, table, value.NewID(), actor, 1) // another organization's
	for name, test := range map[string]struct {
		filter account.AuditFilter
		limit  int
		want   []value.ID
		pages  int
	}{
		"all":                        {account.AuditFilter{}, 100, all, 6},
		"by one actor":               {account.AuditFilter{Actor: actor}, 100, byActor, 2}, // the first page reads 500
		"by one actor, two at once":  {account.AuditFilter{Actor: actor}, 2, byActor, 3},
		"of an action without any":   {account.AuditFilter{Action: "apiKey.created"}, 100, nil, 2},
		"from a time on":             {account.AuditFilter{From: hookNow.Add(500 * time.Second)}, 100, all[:1], 1},
		"a millisecond later":        {account.AuditFilter{From: hookNow.Add(500*time.Second + time.Millisecond)}, 100, nil, 1},
		"before a time":              {account.AuditFilter{To: hookNow.Add(time.Second)}, 100, all[500:], 1},
		"before the first":           {account.AuditFilter{To: hookNow}, 100, nil, 1},
		"from a time on to the same": {account.AuditFilter{From: hookNow, To: hookNow}, 100, nil, 1},
		"by one actor within a time": {account.AuditFilter{Actor: actor, From: hookNow.Add(time.Second), To: hookNow.Add(101 * time.Second)}, 100, byActor[4:5], 1},
	} {
		t.Run(name, func(t *testing.T) {
			var got []value.ID
			before, pages := value.ID{}, 0
			for pages == 0 || !before.IsZero() {
				found, next, err := table.AuditTrail(t.Context(), org, test.filter, before, test.limit)
				if err != nil || len(found) > test.limit {
					t.Fatalf("before %s: %d entries, next %s, %v", before, len(found), next, err)
				}
				for i := range found {
					got = append(got, found[i].ID)
				}
				before = next
				pages++
			}
			if !slices.Equal(got, test.want) || pages != test.pages {
				t.Errorf("got %d entries on %d pages, want %d on %d", len(got), pages, len(test.want), test.pages)
			}
		})
	}
	now = now.Add(account.AuditRetention)
	if found, _, err := table.AuditTrail(t.Context(), org, account.AuditFilter{To: hookNow.Add(2 * time.Second)}, value.ID{}, 100); err != nil || len(found) != 1 {
		t.Errorf("after 400 days: %v, %v; want the one that is a second younger", found, err)
	}
}
