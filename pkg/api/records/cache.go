package records

import (
	"sync"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// recordCache keeps records' documents by organization, kind, id and revision. A
// revision never changes, so a cached document is never stale. A full cache is
// emptied.
type recordCache struct {
	mu    sync.Mutex
	max   int // bytes of documents
	size  int
	byKey map[cacheKey][]byte
}

type cacheKey struct {
	org      value.ID
	kind     commerce.Kind
	id       value.ID
	revision value.Time
}

// cacheOverhead is about how many bytes a cached record takes in addition to its document.
const cacheOverhead = 200

func newRecordCache(maxBytes int) *recordCache {
	return &recordCache{max: maxBytes, byKey: map[cacheKey][]byte{}}
}

// get returns a document; nil when it is not cached.
func (c *recordCache) get(key cacheKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

func (c *recordCache) put(key cacheKey, doc []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] != nil {
		return
	}
	if c.size += len(doc) + cacheOverhead; c.size > c.max {
		clear(c.byKey)
		c.size = len(doc) + cacheOverhead
	}
	c.byKey[key] = doc
}
