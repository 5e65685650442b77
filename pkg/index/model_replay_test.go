package index_test

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/local/faults"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// quietTrial is a trial without faults.
func quietTrial(t *testing.T) *trial {
	t.Helper()
	client, name := dynamotest.Client(t)
	tr := newTrial(t, client, name, faults.Config{})
	t.Cleanup(func() { tr.proxy.Close() })
	return tr
}

// expect asks a new reader for the first of a list, which opens as little as it
// needs, and for everything.
func (tr *trial) expect(when string, list string) {
	tr.t.Helper()
	tr.advance(views.Freshness)
	r := tr.reader("new", 0)
	first := everything()
	first.order = r.lists[list].times[0]
	first.query.OrderBy, first.query.Desc, first.query.Limit = r.lists[list].Schema.Col(first.order), true, 1
	for _, q := range []plainQuery{first, everything()} {
		got, err := r.ask(tr.orgs[0], list, q)
		if err != nil {
			tr.t.Fatalf("%s: %v", when, err)
		}
		total, want := q.answer(tr.rows(tr.orgs[0], list))
		if hits := hitsIn(got); got.Total != total || !slices.Equal(hits, want) {
			tr.t.Errorf("%s: %s shows %v of %d, want %v of %d", when, list, hits, got.Total, want, total)
		}
	}
}

// indexAll has all that is due indexed.
func (tr *trial) indexAll() {
	tr.t.Helper()
	tr.indexWith("indexer", 0)
}

// indexWith has a process index all that is due, after so many records of each
// shard that were indexed before.
func (tr *trial) indexWith(process string, again int) {
	tr.t.Helper()
	for shard := range modelShards {
		if err := tr.index(process, shard, again, 1000); err != nil {
			tr.t.Fatal(err)
		}
	}
}

// replay has one record of the stream, the n-th of a key, indexed again.
func (tr *trial) replay(key recordKey, n int) {
	tr.t.Helper()
	shard := key.shard()
	for i, s := range tr.shards[shard] {
		if s.key != key {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		if err := tr.index("indexer", shard, tr.done[shard]-i, 1); err != nil {
			tr.t.Fatal(err)
		}
		return
	}
}

func (tr *trial) reindex(list string) {
	tr.t.Helper()
	err := ops.Rebuild(tr.t.Context(), tr.direct, tr.compactor(tr.direct), index.Key{Org: tr.orgs[0], List: listNamed(tr.direct, list).List}, func(int, int) {})
	if err != nil {
		tr.t.Fatal(err)
	}
}

func TestAReplayBringsNothingBackAfterARebuild(t *testing.T) {
	for name, later := range map[string]func(tr *trial, key recordKey){
		"deleted": func(tr *trial, key recordKey) { tr.remove(key.org, key.kind, key.id) },
		"moved to another month": func(tr *trial, key recordKey) {
			tr.put(key.org, key.kind, key.id, content{state: "PENDING", number: "n", created: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := quietTrial(t)
			key := recordKey{tr.orgs[0], commerce.KindOrder, modelID(1)}
			tr.put(key.org, key.kind, key.id, content{state: "PENDING", number: "n", created: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)})
			tr.indexAll()
			later(tr, key)
			tr.indexAll()
			tr.expect("after the change", "orders")
			tr.reindex("orders")
			tr.expect("after the rebuild", "orders")
			tr.replay(key, 0)
			tr.expect("after the replay", "orders")
			for range 3 {
				tr.advance(3 * time.Hour)
				if _, err := tr.job("worker", key.org, "orders"); err != nil {
					t.Fatal(err)
				}
				tr.expect("after a job", "orders")
			}
		})
	}
}
