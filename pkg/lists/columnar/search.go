package columnar

import (
	"slices"
	"sync"
	"sync/atomic"
)

// search is the tokens of a query on their way through the chunks.
type search struct {
	tokens [][]byte
	unread [][]byte // tokens for which the text of a chunk is still to be read
	signer *signer  // made for the first chunk without a signature
}

// searches is what a chunk remembers of its searches. Many may go through it at
// once.
type searches struct {
	signing   sync.Mutex // held by the search that makes the signature
	signature atomic.Pointer[signature]
	recent    atomic.Pointer[[]finding]
}

// finding is the rows of a chunk, live or not, in which a token occurs.
type finding struct {
	token string
	rows  *rowset
}

const (
	// readRows is how many rows are read for a token sooner than something is made
	// that later searches need not make again: a signature, a finding.
	readRows = 64
	// maxRecent is how many findings a chunk remembers, the last ones.
	maxRecent = 16
)

// narrow keeps the rows in which every token occurs.
func (h *searches) narrow(s *search, t *texts, closed bool, rows *rowset) {
	if len(t.starts) == 1 {
		// The schema has no searched text.
		*rows = rowset{}
		return
	}
	var signature *signature
	if closed {
		signature = h.signed(s, t, rows)
	}
	s.unread = s.unread[:0]
	for _, token := range s.tokens {
		if known := h.known(token); known != nil && closed {
			rows.and(known)
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
func (h *searches) find(t *texts, signature *signature, token []byte, rows *rowset) bool {
	n := rows.count()
	if n <= readRows {
		return false
	}
	candidates := *fullRows(len(t.starts) - 1)
	if signature != nil {
		signature.narrow(token, &candidates)
	}
	of := candidates.count()
	switch {
	case 4*of > len(t.starts):
		if 4*n <= len(t.starts) {
			return false
		}
		candidates = t.sweep(token)
	case 2*n < of:
		return false
	default:
		t.narrow([][]byte{token}, &candidates)
	}
	if rows.and(&candidates); signature != nil {
		h.remember(token, &candidates)
	}
	return true
}

// known returns the rows in which a token occurs if a search has found them lately.
func (h *searches) known(token []byte) *rowset {
	if recent := h.recent.Load(); recent != nil {
		for i := range *recent {
			if f := &(*recent)[i]; f.token == string(token) {
				return f.rows
			}
		}
	}
	return nil
}

func (h *searches) remember(token []byte, rows *rowset) {
	var old []finding
	if recent := h.recent.Load(); recent != nil {
		old = *recent
	}
	old = old[max(0, len(old)+1-maxRecent):]
	kept := *rows
	recent := append(append(make([]finding, 0, len(old)+1), old...), finding{string(token), &kept})
	// Of searches beside one another one remembers, which is enough.
	h.recent.Store(&recent)
}

// signed returns the chunk's signature, or nil while it has none and a few rows do
// not make it worth one.
func (h *searches) signed(s *search, t *texts, rows *rowset) *signature {
	if made := h.signature.Load(); made != nil || rows.count() <= readRows {
		return made
	}
	h.signing.Lock()
	defer h.signing.Unlock()
	if made := h.signature.Load(); made != nil {
		return made
	}
	if s.signer == nil {
		s.signer = new(signer)
	}
	made := s.signer.sign(t)
	h.signature.Store(made)
	return made
}

// forget is for a chunk that has taken more rows.
func (h *searches) forget() {
	h.signature.Store(nil)
	h.recent.Store(nil)
}

func (h *searches) bytes() int {
	n := 0
	if s := h.signature.Load(); s != nil {
		n += s.bytes()
	}
	if recent := h.recent.Load(); recent != nil {
		for _, r := range *recent {
			n += 8*chunkWords + len(r.token) + 48
		}
	}
	return n
}
