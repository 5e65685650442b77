package records_test

import (
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// TestOrganizationsNeverMix gives two organizations the same ids, stored at
// the same moments and so under the same revisions, and asks one instance,
// whose views and caches are warm, as the one and the other in turn.
func TestOrganizationsNeverMix(t *testing.T) {
	w := newHarness(t, present)
	orgs := []value.ID{ours, theirs}
	const both, gone = 1, 3 // and one that each has alone
	stored := map[value.ID]map[commerce.Kind][]*commerce.Stored{ours: {}, theirs: {}}
	for _, kind := range commerce.Kinds() {
		for i, org := range orgs {
			stored[org][kind] = []*commerce.Stored{w.least(org, kind, numbered(10+i)), w.least(org, kind, numbered(both))}
			w.least(org, kind, numbered(gone+i))
		}
	}
	w.remove(commerce.KindOrder, numbered(gone))
	w.settle()
	api := w.serve()
	for _, round := range []string{"cold", "warm", "warm again"} {
		for i, org := range orgs {
			p := of(org, user())
			for _, kind := range commerce.Kinds() {
				mine, foreign := stored[org][kind], stored[orgs[1-i]][kind][0].ID
				list := ask(t, api, p, "/api/"+kind.Plural()+"?orderDirection=desc&ids="+mine[1].ID.String()+","+mine[0].ID.String()+","+foreign.String())
				list.asked = round + ": " + list.asked
				list.expect(t, mine...)
				expectOnly(t, list, org)
				item := ask(t, api, p, "/api/"+kind.Plural()+"/"+mine[1].ID.String())
				if string(item.body) != string(mine[1].Doc) {
					t.Errorf("%s %s: got %s, want %s", round, item.asked, item.body, mine[1].Doc)
				}
				for _, a := range []answer{
					ask(t, api, p, "/api/"+kind.Plural()+"/"+foreign.String()),
					ask(t, api, p, "/api/"+kind.Plural()+"/"+foreign.String(), "If-None-Match", "*"),
				} {
					if a.status != 404 {
						t.Errorf("%s %s, which the other has: got %d, want 404", round, a.asked, a.status)
					}
				}
			}
		}
		if got := ask(t, api, of(theirs, user()), "/api/deletions").page(t); got.Meta.Total != 0 {
			t.Errorf("%s: their deletions: got %+v, want none", round, got)
		}
		if got := ask(t, api, user(), "/api/deletions").page(t); got.Meta.Total != 1 {
			t.Errorf("%s: our deletions: got %+v, want one", round, got)
		}
	}
}

// expectOnly fails when a list tells of another organization.
func expectOnly(t *testing.T, a answer, org value.ID) {
	t.Helper()
	for _, record := range a.page(t).Data {
		if !strings.Contains(string(record), `"organizationId":"`+org.String()+`"`) {
			t.Errorf("%s: got %s, want records of %s", a.asked, record, org)
		}
	}
}
