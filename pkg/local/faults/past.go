package faults

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// past remembers what items were before the writes of the last moments. A
// partition, all items with one partition key, has one order of writes, and
// a stale read undoes the last few of them: it shows what a replica holds
// that is behind. Two partitions are behind by different times.
type past struct {
	window time.Duration
	now    func() time.Time

	// writing serializes writes of one item, so that what was read before a
	// write is what the write replaced.
	writing [64]sync.Mutex

	mu         sync.Mutex // guards what follows
	schemas    map[string]*schema
	partitions map[string][]*change
}

// change is a write: what the item was before it, nil when there was none.
type change struct {
	at     time.Time
	item   string
	before jsontext.Value
}

// partitionChanges bounds the changes that are remembered of one partition,
// and sweepPartitions is from how many partitions on those without any are
// looked for.
const (
	partitionChanges = 256
	sweepPartitions  = 4096
)

func newPast(window time.Duration, now func() time.Time) *past {
	return &past{window: window, now: now, schemas: map[string]*schema{}, partitions: map[string][]*change{}}
}

// place says where an item is: its partition and the item in it.
type place struct{ partition, item string }

// lock serializes writes of the items until unlock.
func (p *past) lock(places []place) (unlock func()) {
	var stripes []int
	for _, at := range places {
		h := fnv.New32a()
		h.Write([]byte(at.partition + "\x00" + at.item))
		stripes = append(stripes, int(h.Sum32()%uint32(len(p.writing))))
	}
	slices.Sort(stripes)
	stripes = slices.Compact(stripes)
	for _, i := range stripes {
		p.writing[i].Lock()
	}
	return func() {
		for _, i := range stripes {
			p.writing[i].Unlock()
		}
	}
}

// add remembers a write that is about to happen.
func (p *past) add(at place, before jsontext.Value) *change {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.partitions) > sweepPartitions {
		for name := range p.partitions {
			p.recent(name)
		}
	}
	c := &change{at: p.now(), item: at.item, before: before}
	changes := append(p.recent(at.partition), c)
	p.partitions[at.partition] = changes[max(0, len(changes)-partitionChanges):]
	return c
}

// forget drops a write that did not happen.
func (p *past) forget(partition string, c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitions[partition] = slices.DeleteFunc(p.partitions[partition], func(o *change) bool { return o == c })
}

// recent returns the changes of a partition within the window and drops the
// others.
func (p *past) recent(partition string) []*change {
	changes := p.partitions[partition]
	oldest := p.now().Add(-p.window)
	from := 0
	for from < len(changes) && !changes[from].at.After(oldest) {
		from++
	}
	if changes = changes[from:]; len(changes) == 0 {
		delete(p.partitions, partition)
	} else {
		p.partitions[partition] = changes
	}
	return changes
}

// moment is a state of the table in the last moments.
type moment struct {
	past   *past
	random *rand.Rand
	undone map[string]map[string]jsontext.Value // by partition and item: what it was
}

func (p *past) moment(random *rand.Rand) *moment {
	return &moment{past: p, random: random, undone: map[string]map[string]jsontext.Value{}}
}

// was returns what the item was then, nil when there was none. known is
// false when it was what it is now.
func (m *moment) was(at place) (before jsontext.Value, known bool) {
	undone, chosen := m.undone[at.partition]
	if !chosen {
		undone = m.choose(at.partition)
		m.undone[at.partition] = undone
	}
	before, known = undone[at.item]
	return before, known
}

// choose undoes some of a partition's last writes.
func (m *moment) choose(partition string) map[string]jsontext.Value {
	m.past.mu.Lock()
	defer m.past.mu.Unlock()
	changes := m.past.recent(partition)
	undone := map[string]jsontext.Value{}
	if len(changes) == 0 {
		return undone
	}
	for _, c := range changes[m.random.IntN(len(changes)):] {
		if _, earlier := undone[c.item]; !earlier {
			undone[c.item] = c.before
		}
	}
	return undone
}

// schema is the key of a table and of its indexes: attribute names, the
// partition key first.
type schema struct {
	key     []string
	indexes map[string][]string
}

// place says where an item is from attributes that contain its key.
func (s *schema) place(table string, item object) (place, bool) {
	at := place{partition: table}
	for i, name := range s.key {
		value, ok := item[name]
		if !ok {
			return place{}, false
		}
		if i == 0 {
			at.partition += "\x00" + string(value)
		} else {
			at.item = string(value)
		}
	}
	return at, true
}

// keyOf leaves only the key of an item.
func (s *schema) keyOf(item object) object {
	key := object{}
	for _, name := range s.key {
		key[name] = item[name]
	}
	return key
}

// sameIn reports whether an earlier state of an item stands at the same place
// of an index as a later one, as far as a read shows it; always so in the
// table itself, the index "".
func (s *schema) sameIn(index string, earlier, later object) bool {
	for _, name := range s.indexes[index] {
		if earlier[name] == nil || later[name] != nil && !bytes.Equal(earlier[name], later[name]) {
			return false
		}
	}
	return true
}
