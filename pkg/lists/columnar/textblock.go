package columnar

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// appendLengths writes how long the rows of a chunk's group of text are.
func appendLengths(dst []byte, t *TextRows, dead *RowSet) []byte {
	lengths := make([]int64, len(t.Starts)-1)
	for i := range lengths {
		lengths[i] = int64(t.Starts[i+1] - t.Starts[i])
	}
	return appendNumbers(dst, lengths, dead, nil)
}

// textBlock is one block of a group of text, ready for its chunk.
type textBlock struct {
	texts        TextRows
	fingerprints []Ints // by rank; of columns with Match
}

// textReader reads the blocks of one group of text.
type textReader struct {
	schema *Schema
	cols   []Col
	match  []bool // by rank
	room   int    // bytes of text that may still come
	prints [][]int64
	row    []int64
}

func newTextReader(s *Schema, group int) *textReader {
	r := &textReader{
		schema: s, cols: s.groups[group], room: MaxGroup,
		match: make([]bool, len(s.groups[group])), prints: make([][]int64, len(s.groups[group])),
		row: make([]int64, MaxRowGroup),
	}
	for rank, col := range r.cols {
		if r.match[rank] = s.Column(col).Match; r.match[rank] {
			r.prints[rank] = make([]int64, MaxRowGroup)
		}
	}
	return r
}

// starts reads the lengths of n rows; those of dead are 0.
func (b *textReader) starts(r *reader, n int, dead *RowSet) []uint32 {
	lengths := b.row[:n]
	r.numbers(lengths, dead, nil)
	starts := make([]uint32, n+1)
	total := 0
	for i, length := range lengths {
		if dead != nil && dead.Has(i) {
			length = 0
		} else if length < int64(len(b.cols)) || length > int64(b.room-total) {
			r.bad = true
		}
		if r.bad {
			return nil
		}
		total += int(length)
		starts[i+1] = uint32(total)
	}
	b.room -= total
	return starts
}

// scan checks the rows of a block and takes the fingerprints.
func (b *textReader) scan(t TextRows, dead *RowSet) (textBlock, bool) {
	n := len(t.Starts) - 1
	for i := range n {
		if dead != nil && dead.Has(i) {
			for _, prints := range b.prints {
				if prints != nil {
					prints[i] = 0
				}
			}
			continue
		}
		if !b.scanRow(i, t.Row(i)) {
			return textBlock{}, false
		}
	}
	block := textBlock{texts: t, fingerprints: make([]Ints, len(b.cols))}
	for rank, prints := range b.prints {
		if prints != nil {
			block.fingerprints[rank] = PackInts(prints[:n], nil)
		}
	}
	return block, true
}

// scanRow accepts for every column values of valid UTF-8, each behind endValue,
// and endColumn.
func (b *textReader) scanRow(i int, row []byte) bool {
	rank, start, ends := 0, 0, 0
	seen := false // a value of this column
	for at := nextHigh(row, 0); at < len(row); at = nextHigh(row, at) {
		switch row[at] {
		case EndValue:
			if rank == len(b.cols) {
				return false
			}
			if !seen && b.match[rank] {
				b.prints[rank][i] = Fingerprint(row[start:at])
			}
			seen = true
			at++
			ends++
			start = at
		case EndColumn:
			if start != at || rank == len(b.cols) {
				return false
			}
			if !seen && b.match[rank] {
				b.prints[rank][i] = 0
			}
			seen = false
			rank++
			at++
			ends++
			start = at
		default:
			_, size := utf8.DecodeRune(row[at:])
			if size == 1 {
				return false
			}
			at += size
		}
	}
	return rank == len(b.cols) && start == len(row) && len(row)-ends <= MaxText
}

// nextHigh returns the first place from on whose byte is not ASCII, or the length.
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

// give completes a chunk with a group of text.
func (b *textBlock) give(c *RowGroup, group int) {
	c.Text[group] = b.texts
	for rank, col := range c.schema.groups[group] {
		if c.schema.Column(col).Match {
			c.Columns[col].Values = b.fingerprints[rank]
		}
	}
	c.Missing &^= SetOf(textGroup(group))
}
