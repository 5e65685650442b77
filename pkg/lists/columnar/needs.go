package columnar

import "slices"

// NeedsText says whether answering q reads text, so that it needs a view with text. It
// panics as View.Query does.
func (s *Schema) NeedsText(q *Query) bool {
	return s.HasText() && (len(searchTokens(q.Search)) > 0 || q.Filter.readsText(s) || q.AfterID == nil && s.isText(q.OrderBy))
}

func (f *Filter) readsText(s *Schema) bool {
	f.check(s)
	return s.isText(f.col) || slices.ContainsFunc(f.of, func(part Filter) bool { return part.readsText(s) })
}

// Uses returns the last column that answering q reads, 0 when it reads none.
func (s *Schema) Uses(q *Query) int {
	last := q.Filter.uses()
	if q.AfterID == nil {
		last = max(last, int(q.OrderBy))
	}
	if len(searchTokens(q.Search)) > 0 {
		for i, c := range s.columns {
			if c.Search {
				last = max(last, i+1)
			}
		}
	}
	return last
}

func (f *Filter) uses() int {
	last := int(f.col)
	for i := range f.of {
		last = max(last, f.of[i].uses())
	}
	return last
}

// What is kept beside the columns for each document: while the first query of an order
// sorts, a sort item; and the share of the cached tokens of a row group, and with a Text
// with Each of its cached values.
const (
	sortMemory   = 16
	searchMemory = maxCachedTokens * (8*rowWords + 64) / MaxRowGroup
)

// workMemory is what queries take at most for each document, in bytes, beside the
// columns: its place in every ordering, and what is said above.
func (s *Schema) workMemory() int {
	n := sortMemory + searchMemory + 4
	for _, c := range s.columns {
		if c.Sort {
			n += 4
		}
		if c.Each {
			n += searchMemory
		}
	}
	return n
}

// Memory bounds what a segment takes in a view, in bytes, work of queries included: from
// its rows and its bytes before compression, as a column takes no more in memory than
// stored. What is added for a row is for each Keyword its place in a hash table of
// values, and workMemory.
func (s *Schema) Memory(rows, unpacked int) int64 {
	perRow := s.workMemory() + 4
	for _, c := range s.columns {
		if c.Type == Keyword {
			perRow += 12
		}
	}
	// A few rows, or the last ones, are in slices that grow.
	growing := min(rows, MaxRowGroup) * 16 * (len(s.columns) + 2)
	return int64(rows*perRow+unpacked+growing) + int64(rows/MaxRowGroup+1)*(2048+192*int64(len(s.columns)))
}
