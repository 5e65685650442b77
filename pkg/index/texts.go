package index

import (
	"bytes"
	"math/bits"
)

// The bytes that end a value and a column in a row. Neither occurs in valid UTF-8,
// so that what is searched never reaches from one value into another.
const (
	endValue  = 0xff
	endColumn = 0xfe
)

// texts is a chunk's rows of one group of Text columns. A row is, for every column
// of the group, each value and endValue, and then endColumn.
type texts struct {
	data   []byte
	starts []uint32 // one more than there are rows
}

func newTexts() texts { return texts{starts: []uint32{0}} }

func (t *texts) row(i int) []byte { return t.data[t.starts[i]:t.starts[i+1]] }

// search keeps the rows in which every token occurs.
func (t *texts) search(tokens [][]byte, rows *rowset) {
	if 4*rows.count() > len(t.starts) {
		for _, token := range tokens {
			if at, rare := t.rarest(token); rare {
				t.sweep(token, at, rows)
			}
		}
	}
	for w, word := range rows {
		for ; word != 0; word &= word - 1 {
			row := w<<6 + bits.TrailingZeros64(word)
			if !holds(t.row(row), tokens) {
				rows.drop(row)
			}
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

// rarest returns which byte of a token is the rarest in a sample of the text, and
// whether it is in less than a quarter of the rows.
func (t *texts) rarest(token []byte) (at int, rare bool) {
	sample := t.data[:min(len(t.data), 4096)]
	least := len(sample) + 1
	for i := range token {
		if n := bytes.Count(sample, token[i:i+1]); n < least {
			at, least = i, n
		}
	}
	return at, 4*least*len(t.data) < len(t.starts)*len(sample)
}

// sweep keeps the rows in which a token occurs without going from row to row: it
// looks for the byte at one place of the token, which is fast where that is rare.
func (t *texts) sweep(token []byte, at int, rows *rowset) {
	var found rowset
	row := 0
	for pos := at; pos < len(t.data); pos++ {
		next := bytes.IndexByte(t.data[pos:], token[at])
		if next < 0 {
			break
		}
		pos += next
		if !bytes.HasPrefix(t.data[pos-at:], token) {
			continue
		}
		for int(t.starts[row+1]) <= pos {
			row++
		}
		found.add(row)
	}
	rows.and(&found)
}

// close ends the row of what was appended to data.
func (t *texts) close() { t.starts = append(t.starts, uint32(len(t.data))) }

func (t *texts) pack() {
	t.data = append(make([]byte, 0, len(t.data)), t.data...)
	t.starts = append(make([]uint32, 0, len(t.starts)), t.starts...)
}

// first returns the first value of the column of that rank in a row.
func first(row []byte, rank uint8) (value []byte, ok bool) {
	for ; rank > 0; rank-- {
		row = row[bytes.IndexByte(row, endColumn)+1:]
	}
	if row[0] == endColumn {
		return nil, false
	}
	return row[:bytes.IndexByte(row, endValue)], true
}

// appendColumn appends the values of a cell and ends the column.
func appendColumn(dst []byte, c cell) []byte {
	for list := c.list; len(list) > 0; {
		var v []byte
		v, list = nextString(list)
		dst = append(append(dst, v...), endValue)
	}
	return append(dst, endColumn)
}

// fingerprint is one byte that stands for the first value of a cell: 1 to 255, and
// 0 for no value.
func fingerprint(c cell) int64 {
	if c.count == 0 {
		return 0
	}
	v, _ := nextString(c.list)
	return hash8(v)
}

// hash8 hashes to 1 to 255, by FNV-1a.
func hash8(value []byte) int64 {
	h := uint32(2166136261)
	for _, b := range value {
		h = (h ^ uint32(b)) * 16777619
	}
	return int64(uint64(h)*255>>32) + 1
}
