package columnar

import (
	"bytes"
	"unicode/utf8"
)

// endValue and endColumn end a value and a column in a row. Neither occurs in valid
// UTF-8, so that no token is found across the end of a value.
const (
	endValue  = 0xff
	endColumn = 0xfe
)

// TextRows is the text of a row group: that of its searched columns, or of the others.
// A row is, for every column, each value and endValue, and then endColumn.
type TextRows struct {
	Data   []byte
	Starts []uint32 // one more than there are rows
}

// Row returns the text of a row.
func (t *TextRows) Row(i int) []byte { return t.Data[t.Starts[i]:t.Starts[i+1]] }

// find returns the rows from row on in which a token occurs.
func (t *TextRows) find(token []byte, row int) *RowSet {
	found := new(RowSet)
	for from := int(t.Starts[row]); ; from = int(t.Starts[row]) {
		n := bytes.Index(t.Data[from:], token)
		if n < 0 {
			return found
		}
		for row++; int(t.Starts[row]) <= from+n; row++ {
		}
		found.add(row - 1)
	}
}

// ValidRow says whether a row has so many columns of valid UTF-8, each value behind its
// end.
func ValidRow(row []byte, columns int) bool {
	for ; columns > 0; columns-- {
		values, rest, ended := bytes.Cut(row, []byte{endColumn})
		if !ended || len(values) > 0 && values[len(values)-1] != endValue {
			return false
		}
		for value := range bytes.SplitSeq(values, []byte{endValue}) {
			if !utf8.Valid(value) {
				return false
			}
		}
		row = rest
	}
	return len(row) == 0
}

// close ends the row of the bytes appended to data.
func (t *TextRows) close() { t.Starts = append(t.Starts, uint32(len(t.Data))) }

// column returns a row from the column of that rank on.
func column(row []byte, rank uint8) []byte {
	for ; rank > 0; rank-- {
		row = row[bytes.IndexByte(row, endColumn)+1:]
	}
	return row
}

// first returns the first value of the column of that rank in a row.
func first(row []byte, rank uint8) (value []byte, ok bool) {
	row = column(row, rank)
	if row[0] == endColumn {
		return nil, false
	}
	return row[:bytes.IndexByte(row, endValue)], true
}

// textValues returns the values of the column of that rank in a row.
func textValues(row []byte, rank uint8) [][]byte {
	row = column(row, rank)
	row = row[:bytes.IndexByte(row, endColumn)]
	if len(row) == 0 {
		return nil
	}
	return bytes.Split(row[:len(row)-1], []byte{endValue})
}

// appendColumn appends the values of a cell and ends the column.
func appendColumn(dst []byte, c *cell) []byte {
	for v := range stringsIn(c.list) {
		dst = append(append(dst, v...), endValue)
	}
	return append(dst, endColumn)
}
