package columnar

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// searchCache is the rows of the last tokens that were searched in a row group that takes
// no more rows. Many searches may use it at once.
type searchCache struct{ recent atomic.Pointer[[]cachedToken] }

// cachedToken is the rows, live or not, in which a token occurs.
type cachedToken struct {
	token string
	rows  *RowSet
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
		known := g.cache.cached(token)
		if known == nil && closed && rows.Count() > minCachedRows {
			known = t.find(token)
			g.cache.add(token, known)
		}
		if known != nil {
			rows.And(known)
			continue
		}
		rows.keep(func(row int) bool { return bytes.Contains(t.Row(row), token) })
	}
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

// add caches a token in the place of the oldest. Of concurrent searches the last one
// counts.
func (h *searchCache) add(token []byte, rows *RowSet) {
	old := h.tokens()
	recent := slices.Concat(old[max(0, len(old)+1-maxCachedTokens):], []cachedToken{{string(token), rows}})
	h.recent.Store(&recent)
}
