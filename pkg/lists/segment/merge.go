package segment

import (
	"fmt"
	"math"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Merge makes one segment of several. Of the documents with one key the newest
// counts, as View.Apply says, and those for which drop holds are left out; nil drops
// none. drop must not keep its document. It panics unless the text of the segments
// is decoded, and when one is of another schema; it returns ErrTooLarge, wrapped,
// when the result would exceed a segment's bounds.
func Merge(s *columnar.Schema, segments []*Segment, drop func(*columnar.Document) bool) (Encoded, error) {
	divided, err := Divide(s, segments, drop, math.MaxInt)
	if err != nil {
		return Encoded{}, err
	}
	return divided[0].Encoded, nil
}

// Division is one of the segments that others were divided into: it begins with the
// ID From.
type Division struct {
	From [16]byte
	Encoded
}

// Divide merges segments as Merge does into segments of so many documents each, by
// their IDs, the last of which has up to half as many more. Documents of one ID are
// never parted. All documents are in memory at once, with some 200 B each.
func Divide(s *columnar.Schema, segments []*Segment, drop func(*columnar.Document) bool, rows int) ([]Division, error) {
	var docs []columnar.Document
	for _, g := range segments {
		if g.batch.Schema != s {
			panic(fmt.Sprintf("index: Merge: a segment of schema %s, want %s", g.batch.Schema.Name(), s.Name()))
		}
		docs = append(docs, g.Documents()...)
	}
	rest := s.Newest(docs)
	if drop != nil {
		rest = slices.DeleteFunc(rest, drop)
	}
	var out []Division
	for len(out) == 0 || len(rest) > 0 {
		n := len(rest)
		if n-rows > rows/2 {
			for n = rows; n < len(rest) && rest[n].ID == rest[n-1].ID; n++ {
			}
		}
		d := Division{}
		if n > 0 {
			d.From = rest[0].ID
		}
		var err error
		if d.Encoded, err = encode(s, rest[:n]); err != nil {
			return nil, fmt.Errorf("merge %d segments: %w", len(segments), err)
		}
		out, rest = append(out, d), rest[n:]
	}
	return out, nil
}
