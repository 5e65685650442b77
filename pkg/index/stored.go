package index

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// MaxBody is the largest body, in bytes, of a tail entry, a manifest or a
// chunk: a table item holds 400 KB, keys and attribute names included.
const MaxBody = 390 << 10

// For each layout a list has up to two manifests: the one that queries are
// answered from, and the state of a rebuild while one is under way. Their names
// begin so.
const (
	liveManifest    = "MANIFEST"
	rebuildManifest = "REBUILD"
)

// StoredManifest is a manifest, or the state of a rebuild, as storage keeps it.
type StoredManifest struct {
	Version uint64 // rises by one with every write, from 1
	Covered uint64 // the last tail entry that is in the segments
	// CoveredAt is the At of that entry, which may have expired; 0 when it is not
	// known.
	CoveredAt value.Time
	At        value.Time // when it was put
	Body      []byte     // at most [MaxBody] bytes
}

// StoredEntry is a tail entry as storage keeps it.
type StoredEntry struct {
	Sequence uint64
	At       value.Time // when it was appended, and so became visible in lists
	Body     []byte
}

// Position is the position of an entry in its tail.
type Position struct {
	Sequence uint64
	Sum      uint64     // bytes of the bodies up to this entry, since the tail was last empty
	At       value.Time // after the At of the previous entry
	Previous value.Time // At of the previous entry; 0 when it is not known
}

// StoredChunk is a part of a segment's bytes as storage keeps it. A chunk is
// overwritten once nothing needs its content: that costs what the larger of
// the two costs, so the removal of the old content is free (go test -bench
// Chunk in package dynamo: 101 write units for 100 KB, against 202 with a
// deletion). A reader that comes too late notices the other content ID.
type StoredChunk struct {
	Number    uint64 // where it is stored
	ContentID uint64 // of [NewContentID]
	Body      []byte // at most [MaxBody] bytes
}

// Job is a request that the compactor looks at a list. A list has at most one.
type Job struct {
	OrganizationID value.ID
	List           string
	Requests       int64  // how often it had been requested when it was taken
	Holder         uint64 // random, names the run that took it
	Unfinished     int64  // the runs in a row that left work to be done at once
}

const (
	// MaxUnfinished is the runs in a row that may leave work to be done at once.
	// A rebuild takes one for 50,000 documents, so that no list needs as many.
	MaxUnfinished = 5_000
	// StallTime is when a stalled job runs again.
	StallTime = 24 * time.Hour
)

// Stalled reports whether the job takes so many runs that it will hardly end.
// It then runs once each StallTime, despite requests, until a run ends it or
// an operator releases it: without a bound, the messages of a job that cannot
// be done would follow one another for ever.
func (j *Job) Stalled() bool { return j.Unfinished >= MaxUnfinished }

// Reader reads an index from storage.
type Reader interface {
	// Manifest is strongly consistent and returns nil when there is none.
	Manifest(ctx context.Context, org value.ID, list, which string) (*StoredManifest, error)
	// Manifests returns those whose names begin so, strongly consistent, by name.
	Manifests(ctx context.Context, org value.ID, list, prefix string) (map[string]*StoredManifest, error)
	// TailAfter passes the entries after the sequence to each, in order. An
	// eventually consistent read may miss the newest entries, and single ones
	// among them.
	TailAfter(ctx context.Context, org value.ID, list string, after uint64, consistent bool, each func(StoredEntry) error) error
	// Chunks passes the chunks that exist to each, one at a time, in any order.
	Chunks(ctx context.Context, org value.ID, list string, numbers []uint64, consistent bool, each func(StoredChunk) error) error
}

// Requester stores the request for a rebuild.
type Requester interface {
	FieldReader
	// TailEnd returns the position of the last entry that was ever appended; of
	// one that has expired, Sequence and At.
	TailEnd(ctx context.Context, org value.ID, list string) (Position, error)
	// PutManifest replaces version m.Version-1. It reports false when the manifest
	// has another version: what to write must be made anew of that one. After false,
	// as after an error, the write may have been made nevertheless, and been replaced.
	PutManifest(ctx context.Context, org value.ID, list, which string, m StoredManifest) (bool, error)
	// RequestJob requests a job that starts at due or later; the earlier of two
	// times counts.
	RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error
}
