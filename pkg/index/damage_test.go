package index_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// body is the bytes of a stored item.
type body struct {
	bytes []byte
	set   func([]byte)
}

// bodies are the items of a kind that make up the list's index; of the tail the last
// entry, which is not in segments.
func (w *harness) bodies(kind string) (found []body) {
	l := w.storage.(*memory).lists[memoryKey{w.org, w.list.Name}]
	switch kind {
	case "manifest":
		for which, m := range l.manifests {
			found = append(found, body{m.Body, func(b []byte) { m.Body = b; l.manifests[which] = m }})
		}
	case "chunk":
		for _, number := range slices.Sorted(maps.Keys(l.chunks)) {
			c := l.chunks[number]
			found = append(found, body{c.Body, func(b []byte) { c.Body = b; l.chunks[number] = c }})
		}
	case "tail":
		last := &l.tail[len(l.tail)-1]
		found = append(found, body{last.Body, func(b []byte) { last.Body = b }})
	}
	return found
}

// damages are ways in which bytes go wrong. Each changes the body that it is
// given.
var damages = map[string]func(random *rand.Rand, body, other []byte) []byte{
	"a bit is flipped": func(random *rand.Rand, body, _ []byte) []byte {
		body[random.IntN(len(body))] ^= 1 << random.IntN(8)
		return body
	},
	"a byte of the head is another": func(random *rand.Rand, body, _ []byte) []byte {
		body[random.IntN(min(len(body), 24))] += byte(1 + random.IntN(255))
		return body
	},
	"the end is missing": func(random *rand.Rand, body, _ []byte) []byte { return body[:random.IntN(len(body))] },
	"the end is zeros": func(random *rand.Rand, body, _ []byte) []byte {
		clear(body[random.IntN(len(body)):])
		return body
	},
	"something follows":          func(_ *rand.Rand, body, _ []byte) []byte { return append(body, 0) },
	"it is another's":            func(_ *rand.Rand, _, other []byte) []byte { return other },
	"it is another's, cut alike": func(_ *rand.Rand, body, other []byte) []byte { return append(other, body...)[:len(body)] },
}

// change changes things of several months, has them indexed, and then most of them
// flushed and counted.
func (w *harness) change(t *testing.T, random *rand.Rand, ids []value.ID) {
	t.Helper()
	for round := range 3 {
		for range 8 {
			w.put(ids[random.IntN(len(ids))], thing{size: random.Int64N(90), month: 1 + random.IntN(3), deleted: random.IntN(5) == 0})
		}
		w.handle(t, w.indexer(&parked{}), w.stream)
		w.stream = nil
		if round < 2 {
			w.advance(2 * time.Hour)
			w.maintain(t, w.compactor())
		}
	}
}

// refused asks a new instance, and tells whether it refused to answer anything. What it
// answers must be right.
func (w *harness) refused(t *testing.T, what string, logger *slog.Logger) (refused bool) {
	t.Helper()
	cache := views.NewCache(w.storage, views.Config{Clock: w.clock, Start: w, Logger: logger})
	for _, q := range []columnar.Query{
		{OrderBy: createdAt, Desc: true, Limit: 1},
		{OrderBy: size, Limit: 1000},
		{OrderBy: size, Limit: 1000, Search: []string{"thing"}},
	} {
		answer, err := cache.Query(t.Context(), w.org, w.list, q, false)
		if fault.Is(err, fault.Unavailable) {
			refused = true
			continue
		}
		var got []string
		for _, hit := range answer.Hits {
			got = append(got, fmt.Sprint(value.ID(hit.ID), "@", hit.Revision))
		}
		if want := w.want(); err != nil || answer.Total != len(want) || q.Limit > 1 && !slices.Equal(got, want) {
			t.Errorf("%s: %+v: got %v of %d, %v; want %v", what, q, got, answer.Total, err, want)
		}
	}
	return refused
}

// TestADamagedIndexIsNeverAnsweredFrom damages manifests, chunks and the tail
// in many ways. An instance that starts then answers right or not at all, says so
// in the log, and the jobs make the index anew from the table.
func TestADamagedIndexIsNeverAnsweredFrom(t *testing.T) {
	for _, kind := range []string{"manifest", "chunk", "tail"} {
		t.Run(kind, func(t *testing.T) {
			random, ids := rand.New(rand.NewPCG(3, uint64(len(kind)))), make([]value.ID, 30)
			for i := range ids {
				ids[i] = value.NewID()
			}
			w, others := newMemoryHarness(), newMemoryHarness()
			w.list.PartRows, others.list.PartRows = 4, 4
			w.change(t, random, ids)
			others.change(t, random, ids)
			for round := range 5 {
				for _, name := range slices.Sorted(maps.Keys(damages)) {
					ours, theirs := w.bodies(kind), others.bodies(kind)
					at := random.IntN(len(ours))
					other := slices.Concat(ours[:at], ours[at+1:], theirs)[random.IntN(len(ours)-1+len(theirs))]
					ours[at].set(damages[name](random, bytes.Clone(ours[at].bytes), bytes.Clone(other.bytes)))
					var log strings.Builder
					what := fmt.Sprintf("round %d: %s, %s %d of %d", round, name, kind, at, len(ours))
					logger := slog.New(slog.NewTextHandler(&log, nil))
					if !w.refused(t, what, logger) {
						ours[at].set(ours[at].bytes) // bytes that mean nothing
						continue
					}
					if !strings.Contains(log.String(), "rebuilt") {
						t.Errorf("%s: refused, and the log has %q", what, &log)
					}
					w.advance(2 * time.Minute)
					w.maintain(t, w.compactor())
					if w.refused(t, what, logger) {
						t.Fatalf("%s: after jobs the list is refused: %s", what, &log)
					}
					w.verify(t)
					w.change(t, random, ids)
				}
			}
		})
	}
}
