package index_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
)

// storage is what all programs of the index need together.
type storage interface {
	indexer.Storage
	compactor.Storage
}

// memory is a storage without a server; what inBoth runs holds it against the table. When
// it has dies, its calls fail once so many were made.
type memory struct {
	*memoryContent
	clock func() time.Time
	dies  *int
	stall func() // is called before the last call that does not fail
}

type memoryContent struct {
	mu            sync.Mutex
	lists         map[memoryKey]*memoryList
	organizations map[value.ID]bool
}

// dying is the same storage for a process that dies after so many calls.
func (m *memory) dying(calls int) *memory { return &memory{m.memoryContent, m.clock, &calls, nil} }

type memoryKey struct {
	org  value.ID
	list string
}

type memoryList struct {
	tail      []index.StoredEntry
	positions []index.Position
	manifests map[string]index.StoredManifest
	chunks    map[uint64]index.StoredChunk
	job       memoryJob
	jobs      uint64 // taken so far
}

// memoryJob is a list's job; the zero value is none.
type memoryJob struct {
	requests   int64
	due, lease value.Time // due is 0 when the job was not requested since it was taken
	holder     uint64
	unfinished int64
}

func newMemory(clock func() time.Time) *memory {
	return &memory{&memoryContent{lists: map[memoryKey]*memoryList{}, organizations: map[value.ID]bool{}}, clock, nil, nil}
}

// with calls f with the list, under the lock.
func (m *memory) with(ctx context.Context, org value.ID, list string, f func(*memoryList)) error {
	if err := ctx.Err(); err != nil {
		return fault.Busy(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dies != nil {
		if *m.dies--; *m.dies < 0 {
			return errors.New("the process has died")
		}
		if *m.dies == 0 && m.stall != nil {
			m.stall()
		}
	}
	l := m.lists[memoryKey{org, list}]
	if l == nil {
		l = &memoryList{manifests: map[string]index.StoredManifest{}, chunks: map[uint64]index.StoredChunk{}}
		m.lists[memoryKey{org, list}] = l
	}
	f(l)
	return nil
}

// Fields: lists of things have none.
func (m *memory) Fields(context.Context, value.ID) (fields commerce.Fields, err error) {
	return fields, nil
}

func (m *memory) RegisterOrganization(ctx context.Context, org value.ID) error {
	return m.with(ctx, org, "", func(*memoryList) { m.organizations[org] = true })
}

func (m *memory) AppendTail(ctx context.Context, org value.ID, list string, entry func(index.Position) ([]byte, error)) (next index.Position, err error) {
	for done := false; !done; {
		var end index.Position
		err := m.with(ctx, org, list, func(l *memoryList) {
			if n := len(l.positions); n > 0 {
				end = l.positions[n-1]
			}
		})
		if err != nil {
			return next, err
		}
		next = index.Position{Sequence: end.Sequence + 1, At: max(value.TimeOf(m.clock()), end.At+1), Previous: end.At}
		body, err := entry(next)
		if err != nil {
			return next, err
		}
		next.Sum = end.Sum + uint64(len(body))
		err = m.with(ctx, org, list, func(l *memoryList) {
			if done = uint64(len(l.tail)) == end.Sequence; done {
				l.tail = append(l.tail, index.StoredEntry{Sequence: next.Sequence, At: next.At, Body: body})
				l.positions = append(l.positions, next)
			}
		})
		if err != nil {
			return next, err
		}
	}
	return next, nil
}

func (m *memory) TailEnd(ctx context.Context, org value.ID, list string) (end index.Position, err error) {
	return end, m.with(ctx, org, list, func(l *memoryList) {
		if n := len(l.positions); n > 0 {
			end = l.positions[n-1]
			end.Previous = 0
		}
	})
}

func (m *memory) TailAfter(ctx context.Context, org value.ID, list string, after uint64, _ bool, each func(index.StoredEntry) error) error {
	var found []index.StoredEntry
	err := m.with(ctx, org, list, func(l *memoryList) { found = slices.Clone(l.tail[min(after, uint64(len(l.tail))):]) })
	for _, e := range found {
		if err := each(e); err != nil {
			return err
		}
	}
	return err
}

func (m *memory) TailBack(ctx context.Context, org value.ID, list string, upTo uint64, each func(index.StoredEntry) (bool, error)) error {
	var found []index.StoredEntry
	err := m.with(ctx, org, list, func(l *memoryList) { found = slices.Clone(l.tail[:min(upTo, uint64(len(l.tail)))]) })
	for _, e := range slices.Backward(found) {
		if more, err := each(e); err != nil || !more {
			return err
		}
	}
	return err
}

func (m *memory) Manifest(ctx context.Context, org value.ID, list, which string) (found *index.StoredManifest, err error) {
	return found, m.with(ctx, org, list, func(l *memoryList) {
		if stored, ok := l.manifests[which]; ok {
			found = &stored
		}
	})
}

func (m *memory) Manifests(ctx context.Context, org value.ID, list, prefix string) (map[string]*index.StoredManifest, error) {
	found := map[string]*index.StoredManifest{}
	return found, m.with(ctx, org, list, func(l *memoryList) {
		for which, stored := range l.manifests {
			if strings.HasPrefix(which, prefix) {
				found[which] = &stored
			}
		}
	})
}

func (m *memory) PutManifest(ctx context.Context, org value.ID, list, which string, next index.StoredManifest) (done bool, err error) {
	return done, m.with(ctx, org, list, func(l *memoryList) {
		if done = l.manifests[which].Version == next.Version-1; done {
			l.manifests[which] = next
		}
	})
}

func (m *memory) DeleteManifest(ctx context.Context, org value.ID, list, which string, version uint64) error {
	var refused error
	err := m.with(ctx, org, list, func(l *memoryList) {
		if stored, ok := l.manifests[which]; ok && stored.Version != version {
			refused = fault.ErrChanged
			return
		}
		delete(l.manifests, which)
	})
	if err != nil {
		return err
	}
	return refused
}

func (m *memory) Chunks(ctx context.Context, org value.ID, list string, numbers []uint64, _ bool, each func(index.StoredChunk) error) error {
	var found []index.StoredChunk
	err := m.with(ctx, org, list, func(l *memoryList) {
		for _, number := range numbers {
			if c, ok := l.chunks[number]; ok {
				found = append(found, c)
			}
		}
	})
	for _, c := range found {
		if err := each(c); err != nil {
			return err
		}
	}
	return err
}

func (m *memory) PutChunk(ctx context.Context, org value.ID, list string, c index.StoredChunk, replaces uint64) (done bool, err error) {
	return done, m.with(ctx, org, list, func(l *memoryList) {
		old, exists := l.chunks[c.Number]
		if done = !exists || old.ContentID == replaces || old.ContentID == c.ContentID; done && old.ContentID != c.ContentID {
			l.chunks[c.Number] = c
		}
	})
}

// chunks is how many chunks a list has.
func (m *memory) chunks(org value.ID, list string) (n int) {
	_ = m.with(context.Background(), org, list, func(l *memoryList) { n = len(l.chunks) })
	return n
}

func (m *memory) DeleteChunk(ctx context.Context, org value.ID, list string, number, contentID uint64) error {
	return m.with(ctx, org, list, func(l *memoryList) {
		if l.chunks[number].ContentID == contentID {
			delete(l.chunks, number)
		}
	})
}

func (m *memory) RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error {
	return m.with(ctx, org, list, func(l *memoryList) {
		l.job.requests++
		if l.job.due == 0 || l.job.unfinished < index.MaxUnfinished {
			l.job.request(due)
		}
	})
}

func (j *memoryJob) request(due value.Time) {
	if j.due == 0 || due < j.due {
		j.due = max(due, 1)
	}
}

func (m *memory) TakeJob(ctx context.Context, org value.ID, list string, until value.Time) (taken *index.Job, err error) {
	return taken, m.with(ctx, org, list, func(l *memoryList) {
		from := l.job.due
		if l.job.holder != 0 {
			from = l.job.lease
		}
		if l.job == (memoryJob{}) || from > value.TimeOf(m.clock()) {
			return
		}
		l.jobs++
		l.job.holder, l.job.lease, l.job.due = l.jobs, until, 0
		taken = &index.Job{OrganizationID: org, List: list, Requests: l.job.requests, Holder: l.jobs, Unfinished: l.job.unfinished}
	})
}

func (m *memory) EndJob(ctx context.Context, j *index.Job, next *value.Time) (due bool, err error) {
	return due, m.with(ctx, j.OrganizationID, j.List, func(l *memoryList) {
		switch {
		case l.job.holder != j.Holder:
			return
		case next != nil && j.Stalled():
			l.job.due = *next
		case next != nil:
			l.job.request(*next)
		case l.job.requests == j.Requests:
			l.job = memoryJob{}
			return
		}
		l.job.holder, l.job.lease, l.job.unfinished = 0, 0, j.Unfinished
		due = l.job.due <= value.TimeOf(m.clock())
	})
}

func (m *memory) ReleaseJob(ctx context.Context, org value.ID, list string) error {
	return m.with(ctx, org, list, func(l *memoryList) {
		if l.job.unfinished >= index.MaxUnfinished {
			l.job.holder, l.job.lease, l.job.unfinished, l.job.due = 0, 0, 0, value.TimeOf(m.clock())
		}
	})
}
