package columnar

import "bytes"

// EndValue and EndColumn end a value and a column in a row. Neither occurs in valid
// UTF-8, so that no token is found across the end of a value.
const (
	EndValue  = 0xff
	EndColumn = 0xfe
)

// TextRows is a row group's text in one column group. A row is, for every column
// of the group, each value and EndValue, and then EndColumn.
type TextRows struct {
	Data   []byte
	Starts []uint32 // one more than there are rows
}

func newTexts() TextRows { return TextRows{Starts: []uint32{0}} }

// Row returns the text of a row.
func (t *TextRows) Row(i int) []byte { return t.Data[t.Starts[i]:t.Starts[i+1]] }

// narrow keeps the rows in which a token occurs, reading each.
func (t *TextRows) narrow(token []byte, rows *RowSet) {
	for row := range rows.all() {
		if !bytes.Contains(t.Row(row), token) {
			rows.drop(row)
		}
	}
}

// close ends the row of the bytes appended to data.
func (t *TextRows) close() { t.Starts = append(t.Starts, uint32(len(t.Data))) }

func (t *TextRows) pack() {
	t.Data = append(make([]byte, 0, len(t.Data)), t.Data...)
	t.Starts = append(make([]uint32, 0, len(t.Starts)), t.Starts...)
}

// column returns a row from the column of that rank on.
func column(row []byte, rank uint8) []byte {
	for ; rank > 0; rank-- {
		row = row[bytes.IndexByte(row, EndColumn)+1:]
	}
	return row
}

// first returns the first value of the column of that rank in a row.
func first(row []byte, rank uint8) (value []byte, ok bool) {
	row = column(row, rank)
	if row[0] == EndColumn {
		return nil, false
	}
	return row[:bytes.IndexByte(row, EndValue)], true
}

// appendColumn appends the values of a cell and ends the column.
func appendColumn(dst []byte, c *cell) []byte {
	for v := range stringsIn(c.list) {
		dst = append(append(dst, v...), EndValue)
	}
	return append(dst, EndColumn)
}

// fingerprint returns that of the first value of a Text, or 0 when it has none.
func (c *cell) fingerprint() int64 {
	for v := range stringsIn(c.list) {
		return Fingerprint(v)
	}
	return 0
}

// Fingerprint hashes a value to one byte from 1 to 255, by FNV-1a: few rows that
// have the fingerprint of a value have another value.
func Fingerprint(value []byte) int64 {
	h := uint32(2166136261)
	for _, b := range value {
		h = (h ^ uint32(b)) * 16777619
	}
	return int64(uint64(h)*255>>32) + 1
}
