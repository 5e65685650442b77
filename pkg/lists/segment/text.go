package segment

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendLengths writes how long the rows of text are.
func appendLengths(dst []byte, t *columnar.TextRows, deleted *columnar.RowSet) []byte {
	lengths := make([]int64, len(t.Starts)-1)
	for i := range lengths {
		lengths[i] = int64(t.Starts[i+1] - t.Starts[i])
	}
	return appendNumbers(dst, lengths, deleted, nil)
}

// textReader reads the blocks of one group of text.
type textReader struct {
	columns int
	room    int       // bytes of text that may still come
	prints  [][]int64 // fingerprints by the rank of the column; nil without Match
	lengths []int64
}

func newTextReader(s *columnar.Schema, g columnar.ColumnGroup) *textReader {
	t := &textReader{room: MaxGroup, lengths: make([]int64, columnar.MaxRowGroup)}
	for _, col := range s.TextColumns(g) {
		var prints []int64
		if s.Column(col).Match {
			prints = make([]int64, columnar.MaxRowGroup)
		}
		t.prints = append(t.prints, prints)
	}
	t.columns = len(t.prints)
	return t
}

// starts reads the lengths of n rows; those of deleted documents are 0.
func (t *textReader) starts(r *reader, n int, deleted *columnar.RowSet) []uint32 {
	lengths := t.lengths[:n]
	r.readNumbers(lengths, deleted, nil)
	starts := make([]uint32, n+1)
	total := 0
	for i, length := range lengths {
		if deleted.Has(i) {
			length = 0
		} else {
			r.Fail(length < int64(t.columns) || length > int64(t.room-total))
		}
		if r.Bad {
			return nil
		}
		total += int(length)
		starts[i+1] = uint32(total)
	}
	t.room -= total
	return starts
}

// scan checks the rows of a block and takes the fingerprints.
func (t *textReader) scan(rows columnar.TextRows, deleted *columnar.RowSet) (columnar.DecodedText, bool) {
	n := len(rows.Starts) - 1
	for _, prints := range t.prints {
		clear(prints)
	}
	for i := range n {
		if !deleted.Has(i) && !t.scanRow(i, rows.Row(i)) {
			return columnar.DecodedText{}, false
		}
	}
	text := columnar.DecodedText{Rows: rows, Fingerprints: make([]columnar.Ints, t.columns)}
	for rank, prints := range t.prints {
		if prints != nil {
			text.Fingerprints[rank] = columnar.PackInts(prints[:n], nil)
		}
	}
	return text, true
}

// scanRow accepts for every column values of valid UTF-8, each behind EndValue, and
// EndColumn.
func (t *textReader) scanRow(i int, row []byte) bool {
	rank, start, ends := 0, 0, 0
	first := true // no value of this column yet
	for at := nextHigh(row, 0); at < len(row); at = nextHigh(row, at) {
		b := row[at]
		if b != columnar.EndValue && b != columnar.EndColumn {
			_, size := utf8.DecodeRune(row[at:])
			if size == 1 {
				return false
			}
			at += size
			continue
		}
		if rank == t.columns || b == columnar.EndColumn && start != at {
			return false
		}
		if b == columnar.EndColumn {
			rank++
		} else if first && t.prints[rank] != nil {
			t.prints[rank][i] = columnar.Fingerprint(row[start:at])
		}
		first = b == columnar.EndColumn
		at++
		ends++
		start = at
	}
	return rank == t.columns && start == len(row) && len(row)-ends <= columnar.MaxText
}

// nextHigh returns the first position from on whose byte is not ASCII, or the length.
func nextHigh(b []byte, from int) int {
	for ; from+8 <= len(b); from += 8 {
		if high := binary.LittleEndian.Uint64(b[from:]) & 0x8080808080808080; high != 0 {
			return from + bits.TrailingZeros64(high)/8
		}
	}
	for from < len(b) && b[from] < utf8.RuneSelf {
		from++
	}
	return from
}
