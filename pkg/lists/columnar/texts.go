package columnar

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// EndValue and EndColumn end a value and a column in a row. Neither occurs in valid
// UTF-8, so that no token is found across the end of a value.
const (
	EndValue  = 0xff
	EndColumn = 0xfe
)

// TextRows is a row group's text in one column group. A row is, for every column
// of the group, each value and endValue, and then endColumn.
type TextRows struct {
	Data   []byte
	Starts []uint32 // one more than there are rows
}

func newTexts() TextRows { return TextRows{Starts: []uint32{0}} }

// Row returns the text of a row.
func (t *TextRows) Row(i int) []byte { return t.Data[t.Starts[i]:t.Starts[i+1]] }

// narrow keeps the rows in which every token occurs, reading each.
func (t *TextRows) narrow(tokens [][]byte, rows *RowSet) {
	for row := range rows.all() {
		if !holds(t.Row(row), tokens) {
			rows.drop(row)
		}
	}
}

func holds(row []byte, tokens [][]byte) bool {
	for _, token := range tokens {
		if !bytes.Contains(row, token) {
			return false
		}
	}
	return true
}

// sweep returns the rows in which a token occurs, not going from row to row but
// from each occurrence of two bytes of the token to the next.
func (t *TextRows) sweep(token []byte) (found RowSet) {
	at, pair := t.rarest(token)
	row := 0
	for pos := at; ; {
		if pos += indexPair(t.Data[pos:], pair); pos >= len(t.Data) {
			return found
		}
		if !bytes.HasPrefix(t.Data[pos-at:], token) {
			pos++
			continue
		}
		for int(t.Starts[row+1]) <= pos {
			row++
		}
		found.add(row)
		if pos = int(t.Starts[row+1]) + at; pos >= len(t.Data) {
			return found
		}
	}
}

// rarest returns which two adjacent bytes of a token are likely to be the rarest, by a
// sample of the text; of a token of one byte, that byte.
func (t *TextRows) rarest(token []byte) (at int, pair []byte) {
	sample := t.Data[:min(len(t.Data), 4096)]
	least, last := math.MaxInt, len(sample)+1
	for i := range token {
		n := bytes.Count(sample, token[i:i+1])
		if i > 0 && n*last < least {
			at, least = i-1, n*last
		}
		last = n
	}
	return at, token[at:min(at+2, len(token))]
}

// indexPair returns the first position of one or two bytes, or the length of data or
// more. Unlike bytes.Index, it takes the same time however often only the first of
// them occurs.
func indexPair(data, pair []byte) int {
	if len(pair) == 1 {
		if i := bytes.IndexByte(data, pair[0]); i >= 0 {
			return i
		}
		return len(data)
	}
	const ones = 0x0101010101010101
	first, second := uint64(pair[0])*ones, uint64(pair[1])*ones
	rest := data
	for len(rest) >= 9 {
		// Of the bytes that become zero, the lowest is told for certain.
		x := (binary.LittleEndian.Uint64(rest) ^ first) | (binary.LittleEndian.Uint64(rest[1:]) ^ second)
		if zero := (x - ones) &^ x & (ones << 7); zero != 0 {
			return len(data) - len(rest) + bits.TrailingZeros64(zero)>>3
		}
		rest = rest[8:]
	}
	if i := bytes.Index(rest, pair); i >= 0 {
		return len(data) - len(rest) + i
	}
	return len(data)
}

// close ends the row of what was appended to data.
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
	for v := range c.strings() {
		dst = append(append(dst, v...), EndValue)
	}
	return append(dst, EndColumn)
}

// fingerprint returns that of the first value of a Text, or 0 when it has none.
func (c *cell) fingerprint() int64 {
	if c.count == 0 {
		return 0
	}
	return Fingerprint(c.first())
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
