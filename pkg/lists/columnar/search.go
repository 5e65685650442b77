package columnar

import (
	"slices"
	"sync"
	"sync/atomic"
)

// search is the tokens of a query on their way through the chunks.
type search struct {
	tokens  [][]byte
	unread  [][]byte       // tokens for which the text of a chunk is still to be read
	indexer *bigramIndexer // made for the first chunk without a signature
}

// searches is what a chunk remembers of its searches. Many may go through it at
// once.
type searchCache struct {
	indexing sync.Mutex // held by the search that makes the signature
	index    atomic.Pointer[bigramIndex]
	recent   atomic.Pointer[[]cachedToken]
}

// finding is the rows of a chunk, live or not, in which a token occurs.
type cachedToken struct {
	token string
	rows  *RowSet
}

const (
	// readRows is how many rows are read for a token sooner than something is made
	// that later searches need not make again: a signature, a finding.
	minIndexedRows = 64
	// maxRecent is how many findings a chunk remembers, the last ones.
	maxCachedTokens = 16
)

// narrow keeps the rows in which every token occurs.
func (h *searchCache) narrow(s *search, t *TextRows, closed bool, rows *RowSet) {
	if len(t.Starts) == 1 {
		// The schema has no searched text.
		*rows = RowSet{}
		return
	}
	var signature *bigramIndex
	if closed {
		signature = h.indexFor(s, t, rows)
	}
	s.unread = s.unread[:0]
	for _, token := range s.tokens {
		if known := h.known(token); known != nil && closed {
			rows.And(known)
		} else if signature == nil || !signature.narrow(token, rows) {
			s.unread = append(s.unread, token)
		}
	}
	s.unread = slices.DeleteFunc(s.unread, func(token []byte) bool {
		return h.find(t, signature, token, rows)
	})
	if len(s.unread) > 0 {
		t.narrow(s.unread, rows)
	}
}

// find keeps the rows in which a token occurs, of which there are so many that
// looking at all of the chunk, once for many searches, takes little more; otherwise
// it says no.
func (h *searchCache) find(t *TextRows, signature *bigramIndex, token []byte, rows *RowSet) bool {
	n := rows.Count()
	if n <= minIndexedRows {
		return false
	}
	candidates := *AllRows(len(t.Starts) - 1)
	if signature != nil {
		signature.narrow(token, &candidates)
	}
	of := candidates.Count()
	switch {
	case 4*of > len(t.Starts):
		if 4*n <= len(t.Starts) {
			return false
		}
		candidates = t.sweep(token)
	case 2*n < of:
		return false
	default:
		t.narrow([][]byte{token}, &candidates)
	}
	if rows.And(&candidates); signature != nil {
		h.remember(token, &candidates)
	}
	return true
}

// known returns the rows in which a token occurs if a search has found them lately.
func (h *searchCache) known(token []byte) *RowSet {
	if recent := h.recent.Load(); recent != nil {
		for i := range *recent {
			if f := &(*recent)[i]; f.token == string(token) {
				return f.rows
			}
		}
	}
	return nil
}

func (h *searchCache) remember(token []byte, rows *RowSet) {
	var old []cachedToken
	if recent := h.recent.Load(); recent != nil {
		old = *recent
	}
	old = old[max(0, len(old)+1-maxCachedTokens):]
	kept := *rows
	recent := append(append(make([]cachedToken, 0, len(old)+1), old...), cachedToken{string(token), &kept})
	// Of searches beside one another one remembers, which is enough.
	h.recent.Store(&recent)
}

// signed returns the chunk's signature, or nil while it has none and a few rows do
// not make it worth one.
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

// forget is for a chunk that has taken more rows.
func (h *searchCache) forget() {
	h.index.Store(nil)
	h.recent.Store(nil)
}

func (h *searchCache) bytes() int {
	n := 0
	if s := h.index.Load(); s != nil {
		n += s.bytes()
	}
	if recent := h.recent.Load(); recent != nil {
		for _, r := range *recent {
			n += 8*rowWords + len(r.token) + 48
		}
	}
	return n
}
