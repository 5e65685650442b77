package views

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

const (
	// maxScanBytes bounds what a query by parts reads from storage: 32,768 read
	// units.
	maxScanBytes = 256 << 20
	// A query by parts keeps at least minKept of its first hits, so that the
	// pages after it cost nothing, and more for a walk, which is long. It refuses
	// a page that ends behind maxKept.
	minKept    = 1 << 10
	walkedKept = 1 << 14
	maxKept    = 1 << 16
	// maxScans is how many scans are kept, for other pages and for requests that
	// had no time for all parts.
	maxScans = 4
)

// scan is a query whose view does not fit into memory: it reads the partitions
// one after the other and keeps only the first hits and the count. What is
// settled, without a change in the tail, stays read for as long as it is stored
// as it is.
type scan struct {
	key      scanKey
	gathered *columnar.Gathered
	settled  map[index.Range]uint64 // the partitions gathered, with what their segments were
}

// scanKey is the list and the query, its page apart.
type scanKey [sha256.Size]byte

func scanKeyOf(key index.Key, q *columnar.Query, keep int) scanKey {
	return sha256.Sum256(fmt.Appendf(nil, "%x %q %#v %q %d %t %d %t", key.Org, key.List.Name, q.Filter, q.Search, q.OrderBy, q.Desc, keep, q.AfterID != nil))
}

// kept is how many hits a query by parts keeps; 0 when its page is too far away.
func kept(q *columnar.Query) int {
	if q.AfterID != nil {
		return walkedKept
	}
	if q.Offset > maxKept-q.Limit {
		return 0
	}
	return max(minKept, 1<<bits.Len(uint(max(q.Offset, 0)+max(q.Limit, 0)))) //nolint:gosec // never negative
}

// byParts answers a query part by part. Of concurrent ones one reads, and the
// others wait as for a load.
func (c *Cache) byParts(ctx context.Context, key index.Key, q columnar.Query) (lists.Answer, error) {
	keep := kept(&q)
	if keep == 0 {
		return lists.Answer{}, c.refuse(ctx, key, q)
	}
	ctx, cancel := loadTime(ctx)
	defer cancel()
	if err := c.waitForScan(ctx); err != nil {
		return lists.Answer{}, err
	}
	defer func() { <-c.scanning }()
	p := &parts{Cache: c, Index: index.Index{Key: key, Reader: c.storage}, query: q, needs: key.List.Schema.Needs(&q)}
	defer func() { c.giveBack(p.borrowed) }()
	if err := p.open(ctx); err != nil {
		return lists.Answer{}, p.explain(ctx, err)
	}
	rows := 0
	for _, part := range p.parts {
		rows += part.Rows()
	}
	if !p.borrow(columnar.GatheredMemory(min(keep, rows))) {
		return lists.Answer{}, p.explain(ctx, errNoRoom)
	}
	s := c.scanOf(scanKeyOf(key, &q, keep), p, keep)
	defer c.keepScans()
	if err := p.gather(ctx, s); err != nil {
		return lists.Answer{}, p.explain(ctx, err)
	}
	result, err := p.finish(ctx, s)
	return lists.Answer{Result: result, SyncFrom: p.syncFrom}, p.explain(ctx, err)
}

// parts is a list as it is stored, of which a query reads part by part.
type parts struct {
	*Cache
	index.Index
	query    columnar.Query
	needs    columnar.ColumnGroupSet
	manifest *index.Manifest
	version  uint64
	parts    []storedPart
	syncFrom value.Time
	borrowed int64
}

// storedPart is a partition with its changes of the tail.
type storedPart struct {
	*index.Partition
	at      index.Range
	changes []columnar.Document
}

// explain turns what ended a query by parts into what its caller is to know:
// a refusal where memory is too small, and errOutdated where another manifest
// has replaced the chunks.
func (p *parts) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errLongTail):
		p.logTooLarge(ctx, p.Key, p.query, err)
		return fault.Busy(err)
	case errors.Is(err, errNoRoom):
		return p.refuse(ctx, p.Key, p.query)
	case errors.Is(err, index.ErrReplaced):
		switch m, version, loadErr := p.Load(ctx); {
		case errors.Is(loadErr, columnar.ErrNewer):
			return loadErr
		case loadErr == nil && (version != p.version || m.Layout != p.manifest.Layout):
			return errOutdated
		}
	}
	return err
}

// open reads the manifest, and all of the tail behind it.
func (p *parts) open(ctx context.Context) (err error) {
	asked := p.Key
	if p.manifest, p.version, err = p.Load(ctx); err != nil {
		return err
	}
	changes := map[int32][]columnar.Document{}
	if p.Index = p.As(p.manifest.Layout); asked.List.Schema.Uses(&p.query) > p.List.Schema.Len() {
		return errColumns
	}
	last := p.manifest.CoveredAt
	err = p.Tail(ctx, p.manifest.Covered, true, func(_ uint64, e index.TailEntry) error {
		if e.Replaces(asked, p.manifest, p.version) {
			return errOutdated
		}
		if !p.borrow(entryMemory * int64(e.Size)) {
			return errLongTail
		}
		for _, change := range e.Changes {
			changes[change.Partition] = append(changes[change.Partition], change.Document)
		}
		last = e.At
		return nil
	})
	if last != 0 {
		p.syncFrom = last + 1
	}
	if err != nil {
		return err
	}
	changed := map[*index.Partition][]columnar.Document{}
	for number, documents := range changes {
		maps.Insert(changed, p.manifest.Divided(number, documents))
	}
	for i, part := range p.manifest.Partitions {
		p.parts = append(p.parts, storedPart{part, p.manifest.Range(i), changed[part]})
	}
	return p.plan()
}

func (p *parts) borrow(bytes int64) bool {
	ok := p.reserve(nil, &p.lent, bytes)
	if ok {
		p.borrowed += bytes
	}
	return ok
}

// plan leaves out the partitions that have no hit, and refuses more than may be
// read.
func (p *parts) plan() error {
	nothing := columnar.NewView(p.List.Schema)
	count := p.query
	count.AfterID, count.Offset, count.Limit = nil, 0, 0
	p.parts = slices.DeleteFunc(p.parts, func(part storedPart) bool {
		if !part.Sealed || part.changes != nil {
			return false
		}
		open, _, total := nothing.Plan(count, []columnar.Summary{part.Summary})
		return len(open) == 0 && total == 0
	})
	stored := int64(0)
	for _, part := range p.parts {
		stored += part.Stored(p.needs)
	}
	if stored > maxScanBytes {
		return errNoRoom
	}
	return nil
}

// gather reads the settled partitions that the scan lacks. It ends with the time
// of the request, and another one goes on.
func (p *parts) gather(ctx context.Context, s *scan) error {
	for _, part := range p.parts {
		if _, done := s.settled[part.at]; done || part.changes != nil {
			continue
		}
		if err := p.read(ctx, part, s.gathered); err != nil {
			return err
		}
		s.settled[part.at] = identity(part.Partition)
	}
	return nil
}

// finish adds the partitions that the tail has changed to what is settled.
func (p *parts) finish(ctx context.Context, s *scan) (columnar.Result, error) {
	all := s.gathered.Clone()
	for _, part := range p.parts {
		if part.changes == nil {
			continue
		}
		if err := p.read(ctx, part, all); err != nil {
			return columnar.Result{}, err
		}
	}
	result, ok := all.Result(p.query)
	if !ok {
		// The changes have pushed the page of a walk off the end of what is kept.
		p.scans = slices.DeleteFunc(p.scans, func(other *scan) bool { return other == s })
		return columnar.Result{}, errOutdated
	}
	return result, nil
}

// read adds one partition, with its changes of the tail.
func (p *parts) read(ctx context.Context, part storedPart, to *columnar.Gathered) error {
	if ctx.Err() != nil {
		return fault.Busy(errLoading)
	}
	searched := 0
	for _, s := range part.Segments {
		searched += s.Unpacked[columnar.SearchText]
	}
	schema := p.List.Schema
	memory := part.Memory(schema, p.needs) + part.Stored(p.needs) + schema.WorkMemory(&p.query, part.Rows(), searched)
	if !p.borrow(memory) {
		return errNoRoom
	}
	defer func() {
		p.giveBack(memory)
		p.borrowed -= memory
	}()
	segments, err := p.Open(ctx, part.Segments, p.needs)
	if err != nil {
		return fmt.Errorf("read partition %d of %s: %w", part.Number, p.List.Name, err)
	}
	view := columnar.NewView(schema)
	segment.Load(view, segments...)
	view.Apply(part.changes)
	to.Add(view)
	return nil
}

// identity tells one content of a partition from another.
func identity(part *index.Partition) uint64 {
	sum := sha256.New()
	for _, s := range part.Segments {
		for _, chunk := range s.Chunks {
			_ = binary.Write(sum, binary.LittleEndian, [2]uint64{chunk.Number, chunk.ContentID})
		}
	}
	return binary.LittleEndian.Uint64(sum.Sum(nil))
}

// waitForScan waits until no other query reads by parts.
func (c *Cache) waitForScan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitBudget)
	defer cancel()
	select {
	case c.scanning <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Busy(errLoading)
	}
}

// scanOf returns the scan of a query, a new one unless all it has gathered is
// still so. The holder of scanning calls it.
func (c *Cache) scanOf(key scanKey, p *parts, keep int) *scan {
	at := slices.IndexFunc(c.scans, func(s *scan) bool { return s.key == key })
	if at >= 0 {
		s := c.scans[at]
		c.scans = append(slices.Delete(c.scans, at, at+1), s)
		if s.current(p) {
			return s
		}
		c.scans = c.scans[:len(c.scans)-1]
	}
	if len(c.scans) == maxScans {
		c.scans = slices.Delete(c.scans, 0, 1)
	}
	s := &scan{key: key, gathered: p.List.Schema.Gather(p.query, keep), settled: map[index.Range]uint64{}}
	c.scans = append(c.scans, s)
	return s
}

// keepScans counts the memory of the scans that are kept.
func (c *Cache) keepScans() {
	kept := int64(0)
	for _, s := range c.scans {
		kept += s.gathered.Bytes()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent += kept - c.kept
	c.kept = kept
}

// current reports whether all that was gathered is stored as it was and has not
// changed, and has the page.
func (s *scan) current(p *parts) bool {
	same := 0
	for _, part := range p.parts {
		content, settled := s.settled[part.at]
		if settled && (identity(part.Partition) != content || part.changes != nil) {
			return false
		}
		if settled {
			same++
		}
	}
	if same < len(s.settled) {
		return false
	}
	_, ok := s.gathered.Result(p.query)
	return ok
}
