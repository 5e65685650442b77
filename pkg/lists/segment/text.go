package segment

import (
	"bytes"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendText writes the rows of text of a row group: their lengths, and they.
func appendText(dst []byte, t *columnar.TextRows) []byte {
	lengths := make([]int64, len(t.Starts)-1)
	for i := range lengths {
		lengths[i] = int64(len(t.Row(i)))
	}
	return append(appendNumbers(dst, lengths, 4), t.Data...)
}

// textReader reads the blocks of one group of text.
type textReader struct {
	*reader
	match []bool // by the rank of a column: whether it has fingerprints
	room  int    // bytes that may still come
	raw   []byte // used again for every block
}

func newTextReader(r *reader, s *columnar.Schema, g columnar.ColumnGroup) *textReader {
	t := &textReader{reader: r, room: MaxGroup}
	for _, col := range s.TextColumns(g) {
		t.match = append(t.match, s.Column(col).Match)
	}
	return t
}

// read reads the next frame as the text of n rows.
func (t *textReader) read(n int) columnar.DecodedText {
	t.raw = t.frame(t.raw, t.room)
	t.room -= len(t.raw)
	if t.Fail(len(t.raw) < 4*n); t.Bad {
		return columnar.DecodedText{}
	}
	r := reader{strictbinary.Reader{Data: t.raw}}
	lengths := make([]int64, n)
	r.numbers(lengths, 4)
	rows := columnar.TextRows{Data: bytes.Clone(r.Data), Starts: make([]uint32, n+1)}
	end := 0
	for i, length := range lengths {
		end += int(length)
		rows.Starts[i+1] = uint32(end)
	}
	if t.Fail(end != len(rows.Data)); t.Bad {
		return columnar.DecodedText{}
	}
	return t.scan(rows)
}

// scan checks the rows of a block and takes the fingerprints.
func (t *textReader) scan(rows columnar.TextRows) columnar.DecodedText {
	n := len(rows.Starts) - 1
	prints := make([]int64, n*len(t.match))
	for i := range n {
		t.scanRow(rows.Row(i), prints[i:], n)
	}
	text := columnar.DecodedText{Rows: rows, Fingerprints: make([]columnar.Ints, len(t.match))}
	for rank, match := range t.match {
		if match {
			text.Fingerprints[rank] = columnar.PackInts(prints[rank*n:][:n], nil)
		}
	}
	return text
}

// scanRow accepts for every column values of valid UTF-8, each behind EndValue, and
// EndColumn. The fingerprint of the next column is n behind.
func (t *textReader) scanRow(row []byte, prints []int64, n int) {
	for rank, match := range t.match {
		column, rest, ended := bytes.Cut(row, []byte{columnar.EndColumn})
		t.Fail(!ended || len(column) > 0 && column[len(column)-1] != columnar.EndValue)
		for first := true; len(column) > 0; first = false {
			var value []byte
			value, column, _ = bytes.Cut(column, []byte{columnar.EndValue})
			if t.Fail(!utf8.Valid(value)); first && match {
				prints[rank*n] = columnar.Fingerprint(value)
			}
		}
		row = rest
	}
	t.Fail(len(row) > 0)
}
