package index_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
)

// TestAPollingClientMissesNothingWhileTheIndexerIsHeldBack lets a client ask
// every 45 seconds for what became visible since the date of its last first
// page, less 60 seconds, each time another instance, while records come and go
// and the indexer stands still for ten minutes. Instances that start, jobs and
// a rebuild from the table, which shows changes that are not indexed yet, make
// no difference to it.
func TestAPollingClientMissesNothingWhileTheIndexerIsHeldBack(t *testing.T) {
	for name, between := range map[string]func(tr *trial, second int){
		"and nothing else happens": func(*trial, int) {},
		"jobs run": func(tr *trial, second int) {
			if second%100 == 0 {
				tr.work("orders")
				tr.work("deletions")
			}
		},
		"the lists are rebuilt": func(tr *trial, second int) {
			if second%200 == 0 {
				tr.reindex("orders")
				tr.reindex("deletions")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr, random := quietTrial(t), rand.New(rand.NewPCG(1, 2))
			readers := []*reader{tr.reader("first", 0), tr.reader("tiny", 1)}
			clients := []*poller{
				{org: tr.orgs[0], list: "orders", seen: map[string]bool{}}, {org: tr.orgs[0], list: "deletions", seen: map[string]bool{}},
			}
			for second := 5; second <= 15*60; second += 5 {
				tr.advance(5 * time.Second)
				if second%10 == 0 {
					tr.change(random)
				}
				if second < 2*60 || second >= 12*60 {
					tr.indexAll()
				}
				between(tr, second)
				if second%150 == 0 {
					readers = append(readers, tr.reader("later", 0))
				}
				if second%45 == 0 {
					for _, c := range clients {
						if err := c.poll(tr, readers[random.IntN(len(readers)):]); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			tr.indexAll()
			tr.advance(45 * time.Second)
			for _, c := range clients {
				if err := c.poll(tr, readers); err != nil {
					t.Fatal(err)
				}
				if missed := c.missed(tr); len(missed) > 0 || len(c.seen) < 5 {
					t.Errorf("of %s the client saw %d revisions and missed %v", c.list, len(c.seen), missed)
				}
			}
		})
	}
}

// change puts or deletes a random order of the first organization.
func (tr *trial) change(random *rand.Rand) {
	tr.t.Helper()
	id := modelID(random.IntN(modelIDs))
	if random.IntN(3) == 0 {
		tr.remove(tr.orgs[0], commerce.KindOrder, id)
		return
	}
	tr.put(tr.orgs[0], commerce.KindOrder, id, content{
		state: modelStates[random.IntN(len(modelStates))], number: modelWords[random.IntN(len(modelWords))], ref: modelWords[random.IntN(len(modelWords))],
		amount: random.Int64N(9), created: tr.clock().AddDate(0, -random.IntN(3), 0), placed: tr.clock(),
	})
}

// work does the jobs of a list of the first organization, as long as there is
// more to do.
func (tr *trial) work(list string) {
	tr.t.Helper()
	for range 50 {
		more, err := tr.job("worker", tr.orgs[0], list)
		if err != nil {
			tr.t.Fatalf("a job of %s: %v", list, err)
		}
		if !more {
			return
		}
	}
	tr.t.Fatalf("the jobs of %s do not end", list)
}
