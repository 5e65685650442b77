package columnar

// GroupMemory bounds what a view takes for a column group of a segment, in bytes,
// from its rows and its bytes before compression: a column takes no more in memory than
// stored. What is added for a row is its place in the order of ids and, for each
// Keyword, its place in a hash table of values; or where its text starts and the
// fingerprint.
func (s *Schema) GroupMemory(group ColumnGroup, rows, stored int) int64 {
	perRow := 8
	for _, c := range s.columns {
		if group == Core && c.Type == Keyword {
			perRow += 12
		}
	}
	for _, col := range s.text[group] {
		if s.Column(col).Match {
			perRow++
		}
	}
	n := int64(rows)*int64(perRow) + int64(stored)
	// A few rows, or the last ones, are kept unpacked, in slices that grow.
	if group == Core {
		n += int64(min(rows, MaxRowGroup)) * 16 * int64(len(s.columns)+2)
	}
	groups := int64(rows/MaxRowGroup + 1)
	return n + groups*(1024+192*int64(len(s.columns)))
}

// What an order takes for each document: its place, and while it is made two sort
// items.
const orderingMemory = 4 + 2*16

// WorkMemory bounds what answering a query adds to the memory of the view, in bytes:
// the ordering and the indexes of text that it is the first to need.
func (v *View) WorkMemory(q *Query) int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, n := v.table, int64(0)
	if q.AfterID == nil && t.orderings[q.OrderBy].Load() == nil {
		n += orderingMemory * int64(t.live)
	}
	if len(searchTokens(q.Search)) == 0 {
		return n
	}
	for number, g := range t.groups {
		if g != nil && number != t.tail && g.cache.index.Load() == nil {
			n += searchMemory(g.Rows(), len(g.Text[SearchText].Data))
		}
	}
	return n
}

// searchMemory bounds what searches keep for so many rows with so much text: the
// bigram index, which for text in few scripts takes about half of the text, and
// the last tokens.
func searchMemory(rows, text int) int64 {
	return int64(text) + int64(rows/MaxRowGroup+1)*(maxCachedTokens*(8*rowWords+64)+4096)
}

// WorkMemory is View.WorkMemory for documents that are not loaded yet: so many, with
// so many bytes of searched text.
func (s *Schema) WorkMemory(q *Query, documents, searched int) int64 {
	n := int64(0)
	if q.AfterID == nil && q.OrderBy != ByID {
		n += orderingMemory * int64(documents)
	}
	if len(searchTokens(q.Search)) > 0 {
		n += searchMemory(documents, searched)
	}
	return n
}
