package columnar

import (
	"slices"
	"sync"
	"sync/atomic"
)

// search is the tokens of a query while it goes through the row groups.
type search struct {
	tokens  [][]byte
	unread  [][]byte       // tokens for which the text of a row group must still be read
	indexer *bigramIndexer // made for the first row group without an index
}

// searchCache is what a row group that takes no more rows keeps for its searches.
// Many searches may use it at once.
type searchCache struct {
	indexing sync.Mutex // held by the search that makes the index
	index    atomic.Pointer[bigramIndex]
	recent   atomic.Pointer[[]cachedToken]
}

// cachedToken is the rows, live or not, in which a token occurs.
type cachedToken struct {
	token string
	rows  *RowSet
}

const (
	// minIndexedRows is from how many rows on it pays to make something that later
	// searches can use, an index or a cached token, over only reading these rows.
	minIndexedRows = 64
	// maxCachedTokens is how many tokens a row group caches, the last ones.
	maxCachedTokens = 16
)

// narrow keeps the rows in which every token occurs. A row group that takes no more
// rows is closed.
func (h *searchCache) narrow(s *search, t *TextRows, closed bool, rows *RowSet) {
	if len(t.Starts) == 1 { // The schema has no column with Search.
		*rows = RowSet{}
		return
	}
	var index *bigramIndex
	if closed {
		index = h.indexFor(s, t, rows)
	}
	s.unread = s.unread[:0]
	for _, token := range s.tokens {
		if known := h.cached(token); known != nil && closed {
			rows.And(known)
		} else if index == nil || !index.narrow(token, rows) {
			s.unread = append(s.unread, token)
		}
	}
	if index != nil {
		s.unread = slices.DeleteFunc(s.unread, func(token []byte) bool { return h.find(t, index, token, rows) })
	}
	for _, token := range s.unread {
		t.narrow(token, rows)
	}
}

// find keeps the rows in which a token occurs, or returns false. It does so when
// there are so many rows that it costs little more to find the token in all rows of
// the row group, which it caches for other searches.
func (h *searchCache) find(t *TextRows, index *bigramIndex, token []byte, rows *RowSet) bool {
	n := rows.Count()
	if n <= minIndexedRows {
		return false
	}
	found := AllRows(len(t.Starts) - 1)
	if index.narrow(token, found); 2*n < found.Count() {
		return false
	}
	t.narrow(token, found)
	rows.And(found)
	// It replaces the oldest token. Of concurrent searches the last one counts.
	old := h.tokens()
	recent := slices.Concat(old[max(0, len(old)+1-maxCachedTokens):], []cachedToken{{string(token), found}})
	h.recent.Store(&recent)
	return true
}

// cached returns the rows in which a token occurs, or nil when it is not cached.
func (h *searchCache) cached(token []byte) *RowSet {
	for _, c := range h.tokens() {
		if c.token == string(token) {
			return c.rows
		}
	}
	return nil
}

func (h *searchCache) tokens() []cachedToken {
	if recent := h.recent.Load(); recent != nil {
		return *recent
	}
	return nil
}

// indexFor returns the row group's index, or nil while it has none and there are too
// few rows to make it.
func (h *searchCache) indexFor(s *search, t *TextRows, rows *RowSet) *bigramIndex {
	if made := h.index.Load(); made != nil || rows.Count() <= minIndexedRows {
		return made
	}
	h.indexing.Lock()
	defer h.indexing.Unlock()
	if made := h.index.Load(); made != nil {
		return made
	}
	if s.indexer == nil {
		s.indexer = new(bigramIndexer)
	}
	made := s.indexer.build(t)
	h.index.Store(made)
	return made
}

// forget empties the cache of a row group that has taken more rows.
func (h *searchCache) forget() {
	h.index.Store(nil)
	h.recent.Store(nil)
}

func (h *searchCache) bytes() int {
	n := 0
	if index := h.index.Load(); index != nil {
		n += index.bytes()
	}
	for _, c := range h.tokens() {
		n += 8*rowWords + len(c.token) + 48
	}
	return n
}
