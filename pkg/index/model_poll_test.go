package index_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// poller is a client that keeps a copy of an organization's records of a kind:
// it reads their list and the deletions from the times that their last first
// pages told it. Of a record and its deletion the newer counts.
type poller struct {
	org    value.ID
	list   string
	from   map[string]value.Time
	newest map[value.ID]int64 // the revision of a record or its deletion
	copied map[value.ID]int64 // that of a record
	// taken counts what its reads showed, and repeated what it had already.
	taken, repeated int
}

func newPoller(org value.ID, list string) *poller {
	return &poller{org: org, list: list, from: map[string]value.Time{}, newest: map[value.ID]int64{}, copied: map[value.ID]int64{}}
}

// poll asks the readers in turn, one page each.
func (p *poller) poll(readers []*reader) error {
	for _, list := range []string{p.list, "deletions"} {
		if err := p.follow(readers, list); err != nil && !unavailable(err) {
			return err
		}
	}
	return nil
}

// follow walks through what became visible in a list. A walk that is refused is
// done again another time.
func (p *poller) follow(readers []*reader, list string) error {
	q := everything()
	q.query.Filter = columnar.VisibleWithin(int64(p.from[list]), math.MaxInt64)
	if list == "deletions" {
		q.query.Filter = columnar.All(q.query.Filter, columnar.In(readers[0].lists[list].Schema.Col("kind"), p.list[:len(p.list)-1]))
	}
	q.query.Limit, q.query.AfterID = 3, new([16]byte)
	var from value.Time
	for n := 0; ; n++ {
		answer, err := readers[n%len(readers)].askNow(p.org, list, q, n > 0)
		if err != nil {
			return err
		}
		if n == 0 {
			from = answer.SyncFrom
		}
		for _, hit := range answer.Hits {
			p.take(hit, list == "deletions")
			q.query.AfterID = &hit.ID
		}
		if len(answer.Hits) == 0 {
			break
		}
	}
	p.from[list] = from
	return nil
}

func (p *poller) take(hit columnar.Hit, deleted bool) {
	p.taken++
	if hit.Revision <= p.newest[hit.ID] {
		p.repeated++
		return
	}
	p.newest[hit.ID] = hit.Revision
	if delete(p.copied, hit.ID); !deleted {
		p.copied[hit.ID] = hit.Revision
	}
}

// diff compares the table's records with the copy.
func (p *poller) diff(tr *trial) string {
	want := map[value.ID]int64{}
	for _, row := range tr.rows(p.org, p.list) {
		want[row.id] = row.revision
	}
	return gocmp.Diff(want, p.copied)
}

func (m *machine) drawPoll(t *rapid.T) step {
	readers := []*reader{m.drawReader(t), m.drawReader(t)}
	return step{"clients poll", "", func() error {
		for _, p := range m.pollers {
			if err := p.poll(readers); err != nil {
				return err
			}
		}
		return nil
	}}
}

// TestACopyMissesNothingWhileTheIndexerIsHeldBack lets a client poll every 45
// seconds, each time other instances, while records come and go, and are
// indexed by two processes of which one's clock is wrong, and not at all for
// ten minutes. Instances that start, jobs, replays and a rebuild from the
// table, which shows changes that are not indexed yet, make no difference.
func TestACopyMissesNothingWhileTheIndexerIsHeldBack(t *testing.T) {
	for name, row := range map[string]struct {
		between  func(tr *trial, second int)
		repeated int // changes that come again, at most
	}{
		"and nothing else happens": {func(*trial, int) {}, 0},
		"jobs run": {func(tr *trial, second int) {
			if second%100 == 0 {
				tr.work("orders")
				tr.work("deletions")
			}
		}, 0},
		"records are indexed again": {func(tr *trial, second int) {
			if second%200 == 0 {
				tr.indexWith("writer-3", 5)
			}
		}, 80},
		"the lists are rebuilt": {func(tr *trial, second int) {
			if second%200 == 0 {
				tr.reindex("orders")
				tr.reindex("deletions")
			}
		}, 80},
	} {
		t.Run(name, func(t *testing.T) {
			tr, random := quietTrial(t), rand.New(rand.NewPCG(1, 2))
			readers := []*reader{tr.reader("first", 0), tr.reader("tiny", tinyMemory)}
			client := newPoller(tr.orgs[0], "orders")
			for second := 5; second <= 15*60; second += 5 {
				tr.advance(5 * time.Second)
				if second%10 == 0 {
					tr.change(random)
				}
				if second < 2*60 || second >= 12*60 {
					tr.indexWith([]string{"writer-1", "writer-2"}[random.IntN(2)], 0)
				}
				row.between(tr, second)
				if second%150 == 0 {
					readers = append(readers, tr.reader("later", 0))
				}
				if second%45 == 0 {
					if err := client.poll(readers[random.IntN(len(readers)):]); err != nil {
						t.Fatal(err)
					}
				}
			}
			tr.indexAll()
			tr.advance(45 * time.Second)
			if err := client.poll(readers); err != nil {
				t.Fatal(err)
			}
			if diff := client.diff(tr); diff != "" || client.taken-client.repeated < 30 {
				t.Errorf("of %d changes taken %d were new; (-table +copy):\n%s", client.taken, client.taken-client.repeated, diff)
			}
			if client.repeated > row.repeated {
				t.Errorf("%d of %d changes came again, want at most %d", client.repeated, client.taken, row.repeated)
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
