package index

import "bytes"

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

// fingerprint is one byte that stands for a value, 1 to 255; 0 stands for null.
func fingerprint(value []byte) uint8 {
	h := uint32(2166136261) // FNV-1a
	for _, b := range value {
		h = (h ^ uint32(b)) * 16777619
	}
	return uint8((uint64(h)*255)>>32) + 1
}
