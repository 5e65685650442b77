// Package compactor does the jobs of the list index, each for one list: it
// flushes the tail into segments, merges segments, counts partitions that have
// been quiet, and rebuilds a damaged index from the table.
//
// A job is bounded in bytes and time, and safe to repeat. It writes new chunks
// first and then puts the manifest that names them, on the condition that the
// live one is still the one it read. So a job that dies, or that another job
// overtakes, leaves the index as it was. Package index describes everything
// stored.
package compactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

const (
	// maxJobBytes and maxJobTime bound what one job reads to merge and count,
	// and how long it keeps beginning new work.
	maxJobBytes = 64 << 20
	maxJobTime  = 5 * time.Second
	// leaseTime is how long a list belongs to the job that took it.
	leaseTime = time.Minute
	// endTimeout bounds how long a failed job takes to give its lease back.
	endTimeout = 2 * time.Second
	// maxFlushBytes bounds the encoded documents of the tail that one job
	// flushes.
	maxFlushBytes = 32 << 20
	// maxJobMemory bounds what a job takes to look into a partition, and to merge
	// segments. A larger partition is not counted: it stays open to queries, and its
	// dead rows stay.
	maxJobMemory = 256 << 20
	// quietTime is how long after a change a partition is counted.
	quietTime = time.Hour
	// tombstoneUse is how long a tombstone is useful: the stream delivers
	// nothing that is older than its 24 hours.
	tombstoneUse = 48 * time.Hour
	// minUncounted is how many rows a partition grows before it is counted to
	// learn how many have died.
	minUncounted = 1024
)

// Storage keeps the indexes and their jobs.
type Storage interface {
	index.Reader
	index.Requester
	AppendTail(ctx context.Context, org value.ID, list string, body func(next index.Position) ([]byte, error)) (index.Position, error)
	// TailBack passes the entries up to the sequence to each, the newest first,
	// for as long as it wants more.
	TailBack(ctx context.Context, org value.ID, list string, upTo uint64, each func(index.StoredEntry) (more bool, err error)) error
	// DeleteManifest fails when the manifest has another version.
	DeleteManifest(ctx context.Context, org value.ID, list, which string, version uint64) error
	// PutChunk reports false when the chunk has neither the content with the
	// given ID nor none. An ID of 0 allows none only.
	PutChunk(ctx context.Context, org value.ID, list string, c index.StoredChunk, replaces uint64) (bool, error)
	DeleteChunk(ctx context.Context, org value.ID, list string, number, contentID uint64) error
	// TakeJob returns nil when no job is due or another run has it.
	TakeJob(ctx context.Context, org value.ID, list string, until value.Time) (*index.Job, error)
	// EndJob ends a job, or has it run again at next. It reports whether
	// another run is due at once.
	EndJob(ctx context.Context, j *index.Job, next *value.Time) (due bool, err error)
	// ReleaseJob lets a stalled job run at once.
	ReleaseJob(ctx context.Context, org value.ID, list string) error
}

// Compactor does index jobs.
type Compactor struct {
	storage Storage
	lists   map[string]*index.List
	clock   func() time.Time
	logger  *slog.Logger
}

// New returns a compactor of the lists.
func New(storage Storage, lists []*index.List, clock func() time.Time, logger *slog.Logger) *Compactor {
	c := &Compactor{storage: storage, lists: map[string]*index.List{}, clock: clock, logger: logger}
	for _, list := range lists {
		c.lists[list.Name] = list
	}
	return c
}

// Run does one job of a list, if one is due and no other run has it. It reports
// whether more is left to do at once.
func (c *Compactor) Run(ctx context.Context, org value.ID, name string) (more bool, err error) {
	list := c.lists[name]
	if list == nil {
		return false, fmt.Errorf("run a job: unknown list %q", name)
	}
	taken, err := c.storage.TakeJob(ctx, org, name, value.TimeOf(c.clock()).Add(leaseTime))
	if err != nil || taken == nil {
		return false, err
	}
	next, err := c.job(org, list).run(ctx)
	next = c.count(ctx, taken, next, err)
	if err != nil {
		// A lease that is not given back expires.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_, _ = c.storage.EndJob(ctx, taken, next)
		return false, fmt.Errorf("compact %s: %w", name, err)
	}
	return c.storage.EndJob(ctx, taken, next)
}

// count counts the runs of a job that leave work to be done at once, as one
// that fails does, and returns when the next one is due: not yet when the job
// has stalled.
func (c *Compactor) count(ctx context.Context, j *index.Job, next *value.Time, err error) *value.Time {
	now := value.TimeOf(c.clock())
	if err != nil {
		next = &now
	}
	if next == nil || *next > now {
		j.Unfinished = 0
		return next
	}
	j.Unfinished++
	if !j.Stalled() {
		return next
	}
	c.logger.ErrorContext(ctx, "index job stalled", "organizationId", j.OrganizationID, "list", j.List, "runs", j.Unfinished, "error", err)
	return new(now.Add(index.StallTime))
}

// RequestRebuild begins a rebuild of a list, unless one is under way, also
// where jobs have stalled.
func (c *Compactor) RequestRebuild(ctx context.Context, key index.Key) error {
	if err := c.storage.ReleaseJob(ctx, key.Org, key.List.Name); err != nil {
		return err
	}
	return key.RequestRebuild(ctx, c.storage, value.TimeOf(c.clock()))
}

// job is one run of a job.
type job struct {
	index.Index
	storage Storage
	clock   func() time.Time
	logger  *slog.Logger
	start   time.Time
	read    int    // bytes so far
	version uint64 // of the live manifest that it read
	// manifests are those of all layouts that it read, by name.
	manifests map[string]*index.StoredManifest
	progress
}

// progress is what a job has done and what it leaves to another.
type progress struct {
	changed bool // the manifest has to be put
	more    bool // there is more to do at once
	waiting bool // there are partitions to count later
	// recent has the partitions that were flushed into; it is true for those
	// whose last change is not older than quietTime.
	recent map[*index.Partition]bool
}

func (c *Compactor) job(org value.ID, list *index.List) *job {
	return &job{
		Index:   index.Index{Key: index.Key{Org: org, List: list}, Reader: c.storage},
		storage: c.storage, clock: c.clock, logger: c.logger, start: c.clock(),
		progress: progress{recent: map[*index.Partition]bool{}},
	}
}

// run continues a rebuild or else compacts the list, and returns when the next
// job is due; nil when none is.
func (j *job) run(ctx context.Context) (*value.Time, error) {
	rebuild, err := j.storage.Manifest(ctx, j.Org, j.List.Name, j.Layout().Rebuild())
	if err != nil {
		return nil, err
	}
	if rebuild != nil {
		done, err := j.rebuild(ctx, rebuild)
		if err != nil || done {
			return nil, err
		}
		return j.atOnce(), nil
	}
	next, err := j.compact(ctx)
	switch {
	case errors.Is(err, errNewFields):
		j.logger.InfoContext(ctx, "an index is built with new fields", "organizationId", j.Org, "list", j.List.Name)
	case errors.Is(err, errOtherLayout):
		j.logger.InfoContext(ctx, "an index is built in a new layout", "organizationId", j.Org, "list", j.List.Name, "layout", j.Layout())
	case !index.Damaged(err):
		return next, err
	case j.overtaken(ctx):
		return j.atOnce(), nil
	default:
		j.logger.ErrorContext(ctx, "an index is rebuilt", "organizationId", j.Org, "list", j.List.Name, "error", err)
	}
	return j.atOnce(), j.RequestRebuild(ctx, j.storage, j.now())
}

// errOtherLayout says that the list has to be built in the layout of this release: it
// lacks columns, or cannot be read.
var errOtherLayout = errors.New("the list is in another layout")

// errNewFields says that the list has to be built with fields that were declared since.
var errNewFields = errors.New("the list lacks new fields")

// newFields returns when the list can be built with fields that it lacks, 0 when it lacks
// none. It fails with errNewFields when that time has come.
func (j *job) newFields(ctx context.Context, m *index.Manifest) (value.Time, error) {
	fields, err := j.Fields(ctx, j.storage)
	switch {
	case err != nil || fields.Newest(j.List.Kind) <= m.Fields:
		return 0, err
	case fields.KnownAt() <= j.now():
		return 0, errNewFields
	}
	return fields.KnownAt(), nil
}

func (j *job) now() value.Time { return value.TimeOf(j.clock()) }

// atOnce is when the next job is due that continues this one.
func (j *job) atOnce() *value.Time { return new(j.now()) }

// hasRoom reports whether a job may begin work that reads so many bytes. The
// first work always fits.
func (j *job) hasRoom(size int) bool {
	return j.read == 0 || j.read+size <= maxJobBytes && j.inTime()
}

func (j *job) inTime() bool { return j.clock().Sub(j.start) < maxJobTime }

// overtaken reports whether the live manifest is another one than at the job's
// beginning, so that the chunks of that one may have been overwritten.
func (j *job) overtaken(ctx context.Context) bool {
	stored, err := j.storage.Manifest(ctx, j.Org, j.List.Name, j.Layout().Live())
	return err != nil || stored != nil && stored.Version != j.version
}

// compact flushes, expires, divides, merges and counts as far as the job's bounds allow,
// and puts the manifest that results, once.
func (j *job) compact(ctx context.Context) (next *value.Time, err error) {
	if j.manifests, err = j.Manifests(ctx); err != nil {
		return nil, err
	}
	m, version, err := j.Best(j.manifests)
	if errors.Is(err, index.ErrNotBuilt) || err == nil && m.Layout != j.Layout() {
		return nil, errOtherLayout
	}
	j.version = version
	if err != nil {
		return nil, err
	}
	fieldsAt, err := j.newFields(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *index.Manifest) error{j.flush, j.deleteStaleLayouts, j.expire, j.divide, j.merge, j.count} {
		if err := step(ctx, m); err != nil {
			return nil, err
		}
	}
	if j.changed {
		if done, err := j.commit(ctx, m, version); err != nil || !done {
			return j.atOnce(), err
		}
	}
	switch {
	case j.more:
		return j.atOnce(), nil
	case fieldsAt > 0:
		return &fieldsAt, nil
	case j.waiting:
		return new(j.now().Add(quietTime)), nil
	}
	return nil, nil
}

// flush makes a segment for each partition that has changes in the tail beyond
// the manifest.
func (j *job) flush(ctx context.Context, m *index.Manifest) error {
	documents, size := map[int32][]columnar.Document{}, 0
	full := errors.New("enough")
	err := j.Tail(ctx, m.Covered, true, func(sequence uint64, e index.TailEntry) error {
		if size > maxFlushBytes {
			return full
		}
		for _, c := range e.Changes {
			documents[c.Partition] = append(documents[c.Partition], c.Document)
		}
		m.Covered, m.CoveredAt, size = sequence, e.At, size+e.Size
		return nil
	})
	if errors.Is(err, columnar.ErrNewer) { // it is left to the jobs of the release that wrote it
		j.logger.WarnContext(ctx, "an index is newer", "organizationId", j.Org, "list", j.List.Name, "error", err)
		err = nil
	}
	if j.more = errors.Is(err, full); err != nil && !j.more {
		return fmt.Errorf("flush the tail of %s: %w", j.List.Name, err)
	}
	for number, documents := range documents {
		m.Add(number, documents, func(p *index.Partition, documents []columnar.Document) *index.Segment {
			latest := slices.MaxFunc(documents, func(a, b columnar.Document) int { return cmp.Compare(a.Visible, b.Visible) })
			j.recent[p] = latest.Visible > int64(j.now().Add(-quietTime))
			return encode(j.List, documents)
		})
	}
	j.changed = j.changed || len(documents) > 0
	return nil
}

// expire drops the partitions whose documents are no longer useful.
func (j *job) expire(_ context.Context, m *index.Manifest) error {
	m.Partitions = slices.DeleteFunc(m.Partitions, func(p *index.Partition) bool {
		if !j.List.Expired(p.Number, j.start) {
			return false
		}
		release(m, j.now(), p.Segments...)
		j.changed = true
		return true
	})
	return nil
}

// count seals partitions that have been quiet, and counts those that have grown much,
// to learn how many of their rows are dead. A list with one partition is not sealed:
// its queries open it.
func (j *job) count(ctx context.Context, m *index.Manifest) error {
	divided := j.List.By != index.Whole || len(m.Partitions) > 1
	for _, p := range m.Partitions {
		uncounted := divided && !p.Sealed
		if p.Memory(j.List.Schema, false) > maxJobMemory {
			j.logTooLarge(ctx, p)
			continue
		}
		if !grown(p) && (!uncounted || j.recent[p]) || !j.hasRoom(p.Bytes(false)) {
			j.waiting = j.waiting || uncounted
			continue
		}
		if err := j.summarize(ctx, p); err != nil {
			return err
		}
		p.Sealed, j.changed = divided, true
	}
	return nil
}

// logTooLarge logs what the template's alarm watches.
func (j *job) logTooLarge(ctx context.Context, p *index.Partition) {
	j.logger.WarnContext(ctx, "a partition was too large", "organizationId", j.Org, "list", j.List.Name, "partition", p.Number, "rows", p.Rows())
}

// grown reports whether a partition has grown so much since it was last
// counted that many rows may be dead.
func grown(p *index.Partition) bool { return p.Rows()-p.Counted >= max(minUncounted, p.Live/2) }

// mostlyDead reports whether more than half of a partition's rows are dead or
// tombstones, as of the last count.
func mostlyDead(p *index.Partition) bool { return 2*(p.Counted-p.Live) > p.Rows() }

// summarize counts a partition from its segments.
func (j *job) summarize(ctx context.Context, p *index.Partition) error {
	view, err := coreView(ctx, j.Index, p)
	if err != nil {
		return fmt.Errorf("count partition %d: %w", p.Number, err)
	}
	j.read += p.Bytes(false)
	p.Summary = view.Summary()
	p.Counted, p.Live = p.Rows(), p.Summary.Count
	return nil
}

// coreView loads a partition without its text.
func coreView(ctx context.Context, x index.Index, p *index.Partition) (*columnar.View, error) {
	opened, err := x.Open(ctx, p.Segments, false)
	if err != nil {
		return nil, err
	}
	view := columnar.NewCoreView(x.List.Schema)
	segment.Load(view, opened...)
	return view, nil
}
