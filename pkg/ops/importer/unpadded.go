package importer

import (
	"bufio"
	"io"
)

// unpadded takes off the blanks around the fields of a CSV file in which they align the columns: beside quotes they are
// no CSV.
type unpadded struct {
	in     *bufio.Reader
	quoted bool // within quotes
	begun  bool // within a field
	blanks int  // held back: they count if text follows
}

func newUnpadded(r io.Reader) io.Reader { return &unpadded{in: bufio.NewReader(r)} }

// Read implements [io.Reader].
func (u *unpadded) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c, err := u.in.ReadByte()
		if err != nil && n > 0 {
			return n, nil // the error comes again
		}
		if err != nil {
			return 0, err
		}
		switch {
		case u.quoted:
			u.quoted = c != '"'
		case c == ' ' || c == '\t':
			u.blanks++
			continue
		case c == ',' || c == '\n' || c == '\r':
			u.begun, u.blanks = false, 0
		case u.begun && u.blanks > 0:
			u.blanks--
			c = ' '
			_ = u.in.UnreadByte() // which was just read
		default:
			u.quoted = c == '"'
			u.begun, u.blanks = true, 0
		}
		p[n] = c
		n++
	}
	return n, nil
}
