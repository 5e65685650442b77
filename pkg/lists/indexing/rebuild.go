package indexing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
)

var (
	// errGap says that the tail lacks an entry.
	errGap = errors.New("an entry of the tail is missing")
	// errReplaced says that chunks are gone or hold something else: another
	// manifest stands by now or, if not, the index is damaged.
	errReplaced = errors.New("not the chunks that the manifest names")
)

// Damaged says whether an error means that an index cannot be read as it is,
// by this program, and has to be made again from the table.
func Damaged(err error) bool {
	for _, sign := range []error{errManifest, errEntry, errGap, errReplaced, columnar.ErrFormat, columnar.ErrVersion} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

const (
	// rebuildDocuments and rebuildBytes are how many documents a job of a
	// rebuild makes segments of.
	rebuildDocuments = 50_000
	rebuildBytes     = 32 << 20
	// settled is the age from which a change is surely in lists: the stream
	// brings nothing that is older than its 24 hours.
	settled = 26 * time.Hour
)

// building is a rebuild under way: the manifest that is to be, and where in
// the table to go on. It folds the tail from where that ended when the rebuild
// began, so that no change falls between the table and the tail.
type building struct {
	manifest
	shard int
	after string
}

// Its form: shard (uvarint), length and bytes of after, the manifest, and a
// CRC-32C of it all (4 bytes, little endian).
func (b *building) encode(org value.ID, list string) []byte {
	out := appendCount(nil, b.shard)
	out = appendCount(out, len(b.after))
	out = append(out, b.after...)
	out = append(out, b.manifest.encode(org, list)...)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func decodeBuilding(org value.ID, list *List, data []byte) (*building, error) {
	if len(data) < crc32.Size {
		return nil, fmt.Errorf("%d bytes: %w", len(data), errManifest)
	}
	body, sum := data[:len(data)-crc32.Size], data[len(data)-crc32.Size:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("checksum of a rebuild differs: %w", errManifest)
	}
	r := reader{data: body}
	b := &building{shard: r.count()}
	b.after = string(r.take(r.count()))
	if r.bad {
		return nil, fmt.Errorf("head of a rebuild: %w", errManifest)
	}
	m, err := decodeManifest(org, list, r.data)
	if err != nil {
		return nil, err
	}
	b.manifest = *m
	return b, nil
}

// requestRebuild begins a rebuild of a list, unless one is under way, and
// wants a job for it.
func requestRebuild(ctx context.Context, table *dynamo.Table, org value.ID, list *List, now value.Time) error {
	end, err := table.TailEnd(ctx, org, list.Name)
	if err != nil {
		return err
	}
	b := building{manifest: manifest{covered: end, rebuild: value.NewID()}}
	_, err = table.PutManifest(ctx, org, list.Name, dynamo.RebuildManifest, dynamo.Manifest{Version: 1, Covered: end, Body: b.encode(org, list.Name)})
	if err != nil {
		return err
	}
	return table.RequestJob(ctx, org, list.Name, now)
}

// Rebuild makes an index again from the table, while lists are answered by the
// one there is, and returns when it is in its place. One that was interrupted
// goes on where it was. Progress is told in shards of the table that were read.
func (m *Compactor) Rebuild(ctx context.Context, org value.ID, list *List, progress func(done, of int)) error {
	if err := requestRebuild(ctx, m.table, org, list, value.TimeOf(m.clock())); err != nil {
		return err
	}
	for {
		if _, err := m.Run(ctx, org, list.Name); err != nil {
			return err
		}
		stored, err := m.table.Manifest(ctx, org, list.Name, dynamo.RebuildManifest)
		if err != nil || stored == nil {
			return err
		}
		if b, err := decodeBuilding(org, list, stored.Body); err == nil {
			progress(b.shard, list.Shards)
		}
		if err := pause.For(ctx, rebuildPause); err != nil {
			return err
		}
	}
}

// rebuildPause lets others have the list's jobs between two of a rebuild.
const rebuildPause = 10 * time.Millisecond

// rebuild does one job of a rebuild and tells whether it was the last.
func (j *job) rebuild(ctx context.Context, stored *dynamo.Manifest) (done bool, err error) {
	b, err := decodeBuilding(j.org, j.list, stored.Body)
	if err == nil && b.shard < j.list.Shards {
		err = j.gather(ctx, b, stored.Version)
	} else if err == nil {
		done, err = j.finish(ctx, b, stored.Version)
	}
	if !Damaged(err) {
		return done, err
	}
	j.logger.ErrorContext(ctx, "a rebuild starts over", "organizationId", j.org, "list", j.list.Name, "error", err)
	if err := j.table.DeleteManifest(ctx, j.org, j.list.Name, dynamo.RebuildManifest, stored.Version); err != nil {
		return false, err
	}
	return false, requestRebuild(ctx, j.table, j.org, j.list, j.now())
}

// gather reads on in the table and makes segments of what it finds.
func (j *job) gather(ctx context.Context, b *building, version uint64) error {
	known := j.earlier(ctx)
	parts, read, size := map[int32][]columnar.Document{}, 0, 0
	if b.shard == 0 && b.after == "" {
		if err := j.tombstones(ctx, b.covered, parts); err != nil {
			return err
		}
	}
	for b.shard < j.list.Shards && read < rebuildDocuments && size < rebuildBytes && (read == 0 || j.inTime()) {
		documents, next, err := j.list.Read(ctx, j.org, b.shard, b.after)
		if err != nil {
			return err
		}
		j.date(documents, known)
		for _, d := range documents {
			number := j.list.partOf(&d)
			parts[number] = append(parts[number], d)
			size += d.Size()
		}
		read += len(documents)
		b.after = next
		if next == "" {
			b.shard++
		}
	}
	for number, documents := range parts {
		p := b.part(number, true)
		p.segments = append(p.segments, newSegment(columnar.EncodeSegment(j.list.Schema, documents)))
	}
	if _, _, err := j.merge(ctx, &b.manifest); err != nil {
		return err
	}
	return j.save(ctx, b, version)
}

// tombstones adds those that are of use still to the parts they are of: only
// the tail knows them. What it holds and cannot be read is made up for by the
// table.
func (j *job) tombstones(ctx context.Context, upTo uint64, parts map[int32][]columnar.Document) error {
	useless := j.now().Add(-tombstoneUse)
	return j.table.TailBack(ctx, j.org, j.list.Name, upTo, func(e dynamo.TailEntry) (more bool, err error) {
		if e.At < useless {
			return false, nil
		}
		found, err := j.next(e.Sequence-1, e)
		if err != nil {
			return true, nil //nolint:nilerr // as said above
		}
		for _, d := range found.documents {
			if d.Deleted {
				parts[d.part] = append(parts[d.part], d.Document)
			}
		}
		return true, nil
	})
}

func (j *job) save(ctx context.Context, b *building, version uint64) error {
	if err := j.store(ctx, &b.manifest, j.start); err != nil {
		return err
	}
	_, err := j.table.PutManifest(ctx, j.org, j.list.Name, dynamo.RebuildManifest, dynamo.Manifest{
		Version: version + 1, Covered: b.covered, Body: b.encode(j.org, j.list.Name),
	})
	return err
}

// finish brings the new manifest up to the live one and puts it in its place.
// Readers learn of it by an entry of the tail.
func (j *job) finish(ctx context.Context, b *building, version uint64) (bool, error) {
	live, err := j.table.Manifest(ctx, j.org, j.list.Name, dynamo.LiveManifest)
	if err != nil {
		return false, err
	}
	if live == nil {
		live = &dynamo.Manifest{}
	}
	old, err := decodeManifest(j.org, j.list, live.Body)
	if err != nil {
		old = &manifest{} // its chunks are lost, and take their room for good
	}
	if old.rebuild != b.rebuild {
		_, rest, err := j.fold(ctx, &b.manifest)
		if err != nil {
			return false, err
		}
		if rest || b.covered < live.Covered {
			return false, j.save(ctx, b, version)
		}
		b.free = append(b.free, old.free...)
		for i := range old.parts {
			b.release(j.now(), old.parts[i].segments...)
		}
		if err := j.commit(ctx, &b.manifest, live.Version); err != nil {
			if errors.Is(err, errOvertaken) {
				return false, nil
			}
			return false, err
		}
		live.Version++
	}
	if err := j.announce(ctx, live.Version); err != nil {
		return false, err
	}
	return true, j.table.DeleteManifest(ctx, j.org, j.list.Name, dynamo.RebuildManifest, version)
}

// announce tells those that follow the tail that a list was rebuilt, and
// wants the job that folds the announcement.
func (j *job) announce(ctx context.Context, version uint64) error {
	if err := j.table.RequestJob(ctx, j.org, j.list.Name, j.now()); err != nil {
		return err
	}
	_, err := j.table.AppendTail(ctx, j.org, j.list.Name, func(next dynamo.Appended) ([]byte, error) {
		return listKey{j.org, j.list}.seal(next.Sequence, rebuiltEntry(version)), nil
	})
	return err
}

// earlier is a view of the index as it is, to find since when documents have
// been visible; an empty one when it cannot be read.
func (j *job) earlier(ctx context.Context) *columnar.View {
	view, err := readAll(ctx, j.storage)
	if err != nil {
		j.logger.WarnContext(ctx, "an index cannot be read", "organizationId", j.org, "list", j.list.Name, "error", err)
		return columnar.NewView(j.list.Schema)
	}
	return view
}

// date sets the time at which documents became visible: that of the same
// revision in the index there was or, where that does not have it, the time of
// the change for one that has surely been in lists before, and now for others.
func (j *job) date(documents []columnar.Document, known *columnar.View) {
	ids := make([][16]byte, len(documents))
	for i := range documents {
		ids[i] = documents[i].ID
	}
	visible := map[docKey]columnar.Hit{}
	for _, hit := range known.Query(columnar.Query{Filter: columnar.IDs(ids...), OrderBy: columnar.ByID, Limit: 2 * len(ids)}).Hits {
		visible[docKey{id: hit.ID, sub: hit.Sub}] = hit
	}
	now := int64(j.now())
	for i := range documents {
		d := &documents[i]
		hit, ok := visible[docKey{id: d.ID, sub: d.Sub}]
		switch {
		case ok && hit.Revision == d.Revision:
			d.Visible = hit.Visible
		case d.Revision < now-settled.Milliseconds():
			d.Visible = d.Revision
		default:
			d.Visible = now
		}
	}
}

// readAll reads an index as it stands, without its text, as a reader without a
// past would.
func readAll(ctx context.Context, s storage) (*columnar.View, error) {
	m, _, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	view := columnar.NewView(s.list.Schema)
	for i := range m.parts {
		opened, err := s.open(ctx, m.parts[i].all(), core)
		if err != nil {
			return nil, err
		}
		view.Load(opened...)
	}
	err = s.tail(ctx, m.covered, true, func(_ uint64, e tailEntry) error {
		view.Apply(plain(e.documents))
		return nil
	})
	return view, err
}
