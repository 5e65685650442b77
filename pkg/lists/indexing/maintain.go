package indexing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// jobBytes and jobTime bound what one job reads to merge and count, and
	// for how long it begins something more.
	jobBytes = 64 << 20
	jobTime  = 5 * time.Second
	// jobLease is for how long a list is left to the job that took it.
	jobLease = time.Minute
	// maxFold bounds the documents of the tail that one job folds, in bytes of
	// their encoded form.
	maxFold = 32 << 20
	// quiet is how long after a change a part is counted.
	quiet = time.Hour
	// tombstoneUse is how long a tombstone is of use: the stream brings
	// nothing that is older than its 24 hours.
	tombstoneUse = 48 * time.Hour
)

// Maintainer folds tails into segments, merges segments and counts parts, in
// jobs that are bounded and safe to repeat. A job that dies leaves the list
// as it was, and the next does its work.
type Compactor struct {
	table  *dynamo.Table
	lists  map[string]*List
	clock  func() time.Time
	logger *slog.Logger
}

// NewMaintainer returns a maintainer of the lists.
func NewCompactor(table *dynamo.Table, lists []*List, clock func() time.Time, logger *slog.Logger) *Compactor {
	m := &Compactor{table: table, lists: map[string]*List{}, clock: clock, logger: logger}
	for _, list := range lists {
		m.lists[list.Name] = list
	}
	return m
}

// Run does one job of a list, if one is wanted and no other run has it. It
// tells whether more is left to do at once.
func (m *Compactor) Run(ctx context.Context, org value.ID, name string) (more bool, err error) {
	list := m.lists[name]
	if list == nil {
		return false, fmt.Errorf("run a job: there is no list %q", name)
	}
	taken, err := m.table.TakeJob(ctx, org, name, value.TimeOf(m.clock()).Add(jobLease))
	if err != nil || taken == nil {
		return false, err
	}
	next, err := m.step(ctx, org, list)
	if err != nil {
		// Another run may try again at once; a lease that is not given back ends
		// by itself.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
		defer cancel()
		_, _ = m.table.EndJob(ctx, taken, new(value.TimeOf(m.clock())))
		return false, fmt.Errorf("maintain %s: %w", name, err)
	}
	return m.table.EndJob(ctx, taken, next)
}

// giveBack bounds how long a job that failed takes to say so.
const giveBack = 2 * time.Second

// step rebuilds a list where that is wanted, or else maintains it, and tells
// when the next job is due; nil when none is.
func (m *Compactor) step(ctx context.Context, org value.ID, list *List) (*value.Time, error) {
	j := m.job(org, list)
	rebuilding, err := m.table.Manifest(ctx, org, list.Name, dynamo.RebuildManifest)
	if err != nil {
		return nil, err
	}
	if rebuilding == nil {
		next, err := j.maintain(ctx)
		if !Damaged(err) {
			return next, err
		}
		if j.overtaken(ctx) {
			return j.soon(), nil
		}
		m.logger.ErrorContext(ctx, "an index is rebuilt", "organizationId", org, "list", list.Name, "error", err)
		if err := requestRebuild(ctx, m.table, org, list, j.now()); err != nil {
			return nil, err
		}
		return j.soon(), nil
	}
	done, err := j.rebuild(ctx, rebuilding)
	if err != nil || done {
		return nil, err
	}
	return j.soon(), nil
}

// job is one run of work on a list.
type job struct {
	storage
	logger  *slog.Logger
	start   time.Time
	bytes   int    // read so far
	version uint64 // of the live manifest that it read
}

func (m *Compactor) job(org value.ID, list *List) *job {
	return &job{storage: storage{m.table, org, list, m.clock}, logger: m.logger, start: m.clock()}
}

func (j *job) now() value.Time { return value.TimeOf(j.clock()) }

func (j *job) soon() *value.Time { return new(j.now()) }

// room says whether a job may begin something that reads so many bytes. The
// first thing always may.
func (j *job) room(size int) bool {
	return j.bytes == 0 || j.bytes+size <= jobBytes && j.inTime()
}

func (j *job) inTime() bool { return j.clock().Sub(j.start) < jobTime }

// overtaken says whether another manifest stands than the one that the job
// began with, so that what it names may have been replaced.
func (j *job) overtaken(ctx context.Context) bool {
	stored, err := j.table.Manifest(ctx, j.org, j.list.Name, dynamo.LiveManifest)
	return err != nil || stored != nil && stored.Version != j.version
}

// maintain folds, drops, merges and counts as far as its bounds allow, and
// puts the manifest that results, once.
func (j *job) maintain(ctx context.Context) (*value.Time, error) {
	m, version, err := j.load(ctx)
	j.version = version
	if err != nil {
		return nil, err
	}
	touched, rest, err := j.fold(ctx, m)
	if err != nil {
		return nil, err
	}
	changed := len(touched) > 0
	if j.expire(m) {
		changed = true
	}
	merged, left, err := j.merge(ctx, m)
	if err != nil {
		return nil, err
	}
	counted, waiting, err := j.count(ctx, m, touched)
	if err != nil {
		return nil, err
	}
	if changed || merged || counted {
		if err := j.commit(ctx, m, version); err != nil {
			if errors.Is(err, errOvertaken) {
				return j.soon(), nil
			}
			return nil, err
		}
	}
	switch {
	case rest || left:
		return j.soon(), nil
	case waiting:
		return new(j.now().Add(quiet)), nil
	}
	return nil, nil
}

// errOvertaken says that another job has put a manifest in between.
var errOvertaken = errors.New("another job was faster")

// commit stores the segments that are new and puts the manifest in the place
// of the version that it came from.
func (j *job) commit(ctx context.Context, m *manifest, version uint64) error {
	if err := j.store(ctx, m, j.start); err != nil {
		return err
	}
	surplus := m.surplus()
	done, err := j.table.PutManifest(ctx, j.org, j.list.Name, dynamo.LiveManifest, dynamo.Manifest{
		Version: version + 1, Covered: m.covered, Body: m.encode(j.org, j.list.Name),
	})
	if err != nil {
		return err
	}
	if !done {
		return errOvertaken
	}
	for _, c := range surplus {
		if err := j.table.DeleteChunk(ctx, j.org, j.list.Name, c.slot, c.mark); err != nil {
			return err
		}
	}
	return nil
}

// fold makes segments of what the tail holds beyond the manifest: one for each
// part that it touches. It tells which parts, whether the last change of each
// is recent, and whether some of the tail is left.
func (j *job) fold(ctx context.Context, m *manifest) (touched map[int32]bool, rest bool, err error) {
	var documents []placed
	covered, size := m.covered, 0
	full := errors.New("enough")
	err = j.tail(ctx, m.covered, true, func(sequence uint64, e tailEntry) error {
		if size > maxFold {
			return full
		}
		documents = append(documents, e.documents...)
		covered, size = sequence, size+e.size
		return nil
	})
	if err != nil && !errors.Is(err, full) {
		return nil, false, fmt.Errorf("fold the tail of %s: %w", j.list.Name, err)
	}
	touched = map[int32]bool{}
	for number, documents := range byPart(documents) {
		p := m.part(number, true)
		p.segments = append(p.segments, newSegment(columnar.EncodeSegment(j.list.Schema, documents)))
		p.sealed = false
		touched[number] = documents[len(documents)-1].Visible > int64(j.now().Add(-quiet))
	}
	m.covered = covered
	return touched, errors.Is(err, full), nil
}

// next decodes the entry that follows a sequence and sets the time at which its
// documents became visible.
func (s storage) next(after uint64, e dynamo.TailEntry) (tailEntry, error) {
	if e.Sequence != after+1 {
		return tailEntry{}, fmt.Errorf("entry %d follows %d: %w", e.Sequence, after, errGap)
	}
	found, err := listKey{s.org, s.list}.readEntry(e.Sequence, e.Body)
	if err != nil {
		return tailEntry{}, fmt.Errorf("entry %d of the tail: %w", e.Sequence, err)
	}
	for i := range found.documents {
		found.documents[i].Visible = int64(e.At)
	}
	return found, nil
}

// expire drops the parts whose documents are of no use any more.
func (j *job) expire(m *manifest) bool {
	kept := m.parts[:0]
	for _, p := range m.parts {
		if j.list.expired(p.number, j.start) {
			m.release(j.now(), p.segments...)
			continue
		}
		kept = append(kept, p)
	}
	dropped := len(kept) < len(m.parts)
	clear(m.parts[len(kept):])
	m.parts = kept
	return dropped
}

// count takes the summaries of parts that have been quiet, and of parts that
// have grown much, to learn how much of them is dead. It tells whether parts
// wait to be counted.
func (j *job) count(ctx context.Context, m *manifest, touched map[int32]bool) (counted, waiting bool, err error) {
	for i := range m.parts {
		p := &m.parts[i]
		unsealed := j.list.By != Whole && !p.sealed
		if !p.grown() && (!unsealed || touched[p.number]) || !j.room(p.bytes()) {
			waiting = waiting || unsealed
			continue
		}
		if err := j.summarize(ctx, p); err != nil {
			return counted, waiting, err
		}
		p.sealed = unsealed
		counted = true
	}
	return counted, waiting, nil
}

// grown says whether so many rows came since the last count that many may
// have died.
func (p *part) grown() bool { return p.rows()-p.counted >= max(worthCounting, p.live/2) }

const worthCounting = 1024

// dead says whether more than half of a part's rows are dead or tombstones, as
// far as it was counted.
func (p *part) dead() bool { return 2*(p.counted-p.live) > p.rows() }

// summarize counts a part from its segments.
func (j *job) summarize(ctx context.Context, p *part) error {
	segments := p.all()
	opened, err := j.open(ctx, segments, core)
	if err != nil {
		return fmt.Errorf("count part %d: %w", p.number, err)
	}
	for _, s := range segments {
		j.bytes += s.groups[columnar.Core]
	}
	view := columnar.NewView(j.list.Schema)
	view.Load(opened...)
	p.summary = view.Summary()
	p.counted, p.live = p.rows(), p.summary.Count
	return nil
}

func (p *part) all() []*segment {
	segments := make([]*segment, len(p.segments))
	for i := range p.segments {
		segments[i] = &p.segments[i]
	}
	return segments
}
