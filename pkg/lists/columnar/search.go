package columnar

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// searchCache is the rows of the last tokens that were searched in a row group. Many
// searches may use it at once.
type searchCache struct{ recent atomic.Pointer[[]cachedToken] }

// cachedToken is the rows, live or not, in which a token occurs, of the first upTo.
type cachedToken struct {
	token string
	rows  *RowSet
	upTo  int
}

const (
	// maxCachedTokens is how many tokens a row group caches.
	maxCachedTokens = 64
	// minCachedRows is from how many rows on it pays to find a token in all rows of the
	// row group, for later searches too, over reading only these.
	minCachedRows = 64
)

// search keeps the rows in which every token occurs. A row group that takes no more
// rows is closed.
func (g *RowGroup) search(tokens [][]byte, closed bool, rows *RowSet) {
	if len(g.schema.text[0]) == 0 {
		*rows = RowSet{}
		return
	}
	t := &g.Text[0]
	for _, token := range tokens {
		if known := g.cache.cached(token); known != nil {
			rows.And(known.rows)
			continue
		}
		if closed && rows.Count() > minCachedRows {
			found := t.find(token, 0)
			g.cache.add(token, found, g.Rows())
			rows.And(found)
			continue
		}
		rows.keep(func(row int) bool { return bytes.Contains(t.Row(row), token) })
	}
}

// cached returns what is cached of a token, or nil.
func (h *searchCache) cached(token []byte) *cachedToken {
	recent := h.tokens()
	for i := len(recent) - 1; i >= 0; i-- {
		if recent[i].token == string(token) {
			return &recent[i]
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

// add caches a token in the place of the oldest. Of concurrent searches the last one
// counts.
func (h *searchCache) add(token []byte, rows *RowSet, upTo int) {
	old := h.tokens()
	recent := slices.Concat(old[max(0, len(old)+1-maxCachedTokens):], []cachedToken{{string(token), rows, upTo}})
	h.recent.Store(&recent)
}
