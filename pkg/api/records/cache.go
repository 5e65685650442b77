package records

import (
	"container/list"
	"sync"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// recordCache is an LRU cache of records' documents, by organization, kind, id
// and revision. A revision never changes, so a cached document is never stale.
type recordCache struct {
	mu       sync.Mutex
	max      int // bytes of documents
	size     int
	byKey    map[cacheKey]*list.Element
	byRecent *list.List // of cachedRecord, the most recent first
}

type cacheKey struct {
	org      value.ID
	kind     commerce.Kind
	id       value.ID
	revision value.Time
}

type cachedRecord struct {
	key cacheKey
	doc []byte
}

// cacheOverhead is about how many bytes a cached record takes in addition to its document.
const cacheOverhead = 200

func newRecordCache(maxBytes int) *recordCache {
	return &recordCache{max: maxBytes, byKey: map[cacheKey]*list.Element{}, byRecent: list.New()}
}

// get returns a document; nil when it is not cached.
func (c *recordCache) get(key cacheKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[key]
	if element == nil {
		return nil
	}
	c.byRecent.MoveToFront(element)
	return element.Value.(cachedRecord).doc //nolint:forcetypeassert // the list holds nothing else
}

func (c *recordCache) put(key cacheKey, doc []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] != nil {
		return
	}
	c.byKey[key] = c.byRecent.PushFront(cachedRecord{key, doc})
	c.size += len(doc) + cacheOverhead
	for c.size > c.max {
		last := c.byRecent.Back()
		dropped := c.byRecent.Remove(last).(cachedRecord) //nolint:forcetypeassert // as above
		delete(c.byKey, dropped.key)
		c.size -= len(dropped.doc) + cacheOverhead
	}
}
