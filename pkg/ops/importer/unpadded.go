package importer

import (
	"bufio"
	"io"
)

// unpadded takes the blanks off that stand before and after the fields of a CSV
// file, which would otherwise not let a field begin with its quotes. Vendure
// aligns its columns so.
type unpadded struct {
	in     *bufio.Reader
	quoted bool // within quotes
	text   bool // within a field
	blanks int  // held back: they count if text follows
}

func newUnpadded(r io.Reader) io.Reader { return &unpadded{in: bufio.NewReader(r)} }

// Read implements [io.Reader].
func (u *unpadded) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c, err := u.in.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		switch {
		case u.quoted:
			u.quoted = c != '"'
		case c == ' ' || c == '\t':
			u.blanks++
			continue
		case c == ',' || c == '\n' || c == '\r':
			u.text, u.blanks = false, 0
		default:
			if u.text && u.blanks > 0 {
				if err := u.in.UnreadByte(); err != nil {
					return n, err
				}
				u.blanks--
				c = ' '
				break
			}
			u.quoted = c == '"'
			u.text, u.blanks = true, 0
		}
		p[n] = c
		n++
	}
	return n, nil
}
