package index

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
	recent    atomic.Pointer[[]sweep]
}

// sweep is the rows of a chunk, live or not, in which a token occurs.
type sweep struct {
	token string
	rows  *rowset
}

const (
	// readRows is how many rows are read sooner than a chunk is signed for them.
	readRows = 64
	// maxRecent is how many sweeps a chunk remembers, the last ones. Only tokens
	// that many rows may hold are worth one.
	maxRecent = 8
)

// narrow keeps the rows in which every token occurs.
func (h *searches) narrow(s *search, t *texts, closed bool, rows *rowset) {
	s.unread = append(s.unread[:0], s.tokens...)
	if closed {
		h.sign(s, t, rows)
	}
	for i := 0; i < len(s.unread) && 4*rows.count() > len(t.starts); {
		rows.and(h.sweep(t, s.unread[i], closed))
		s.unread = slices.Delete(s.unread, i, i+1)
	}
	if len(s.unread) > 0 {
		t.narrow(s.unread, rows)
	}
}

// sign narrows rows by the signature and leaves unread what it does not tell.
func (h *searches) sign(s *search, t *texts, rows *rowset) {
	signature := h.signature.Load()
	if signature == nil {
		if rows.count() <= readRows {
			return
		}
		signature = h.signed(s, t)
	}
	s.unread = slices.DeleteFunc(s.unread, func(token []byte) bool { return signature.narrow(token, rows) })
}

func (h *searches) signed(s *search, t *texts) *signature {
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

func (h *searches) sweep(t *texts, token []byte, closed bool) *rowset {
	var recent []sweep
	if p := h.recent.Load(); p != nil {
		recent = *p
	}
	for _, r := range recent {
		if r.token == string(token) {
			return r.rows
		}
	}
	found := sweep{string(token), t.sweep(token)}
	if closed {
		recent = recent[max(0, len(recent)+1-maxRecent):]
		recent = append(append(make([]sweep, 0, len(recent)+1), recent...), found)
		h.recent.Store(&recent)
	}
	return found.rows
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
