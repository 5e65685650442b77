package records

import (
	"container/list"
	"sync"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// recordCache keeps the documents of records by organization, kind, id and
// revision, the least recently used leaving when it is full. A revision never
// changes, so that nothing in it is ever stale.
type recordCache struct {
	mu       sync.Mutex
	max      int // bytes of documents
	size     int
	byKey    map[cacheKey]*list.Element
	byRecent *list.List // of cacheEntry, the most recent first
}

type cacheKey struct {
	org      value.ID
	kind     commerce.Kind
	id       value.ID
	revision value.Time
}

type cacheEntry struct {
	key cacheKey
	doc []byte
}

// entryOverhead is about what an entry takes beside its document.
const entryOverhead = 200

func newRecordCache(maxBytes int) *recordCache {
	return &recordCache{max: maxBytes, byKey: map[cacheKey]*list.Element{}, byRecent: list.New()}
}

// get returns a document, nil when it is not there.
func (c *recordCache) get(key cacheKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[key]
	if element == nil {
		return nil
	}
	c.byRecent.MoveToFront(element)
	return element.Value.(cacheEntry).doc //nolint:forcetypeassert // the list holds nothing else
}

func (c *recordCache) put(key cacheKey, doc []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] != nil {
		return
	}
	c.byKey[key] = c.byRecent.PushFront(cacheEntry{key, doc})
	c.size += len(doc) + entryOverhead
	for c.size > c.max {
		last := c.byRecent.Back()
		dropped := c.byRecent.Remove(last).(cacheEntry) //nolint:forcetypeassert // as above
		delete(c.byKey, dropped.key)
		c.size -= len(dropped.doc) + entryOverhead
	}
}
