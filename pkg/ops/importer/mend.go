package importer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// mend repairs text that was written in one encoding and read in another. Bytes
// that are not UTF-8 are read as Windows-1252, and so are C1 control characters.
// UTF-8 that was read as Latin-1 is read again as UTF-8. Other control
// characters, which the service refuses, are taken out. It returns what it did,
// which is empty when the text was in order.
func mend(text string) (mended, changes string) {
	if !suspicious(text) {
		return text, ""
	}
	var out strings.Builder
	count, position := 0, 0
	note := func(bad string, now string) {
		if count++; count == 1 {
			changes = fmt.Sprintf("character %d is %s, imported as %q", position, bad, now)
		}
		out.WriteString(now)
	}
	for rest := text; rest != ""; {
		position++
		r, size := utf8.DecodeRuneInString(rest)
		switch latin := latinRun(rest); {
		case r == utf8.RuneError && size == 1:
			note(fmt.Sprintf("the byte %02X", rest[0]), windows1252(rest[0]))
		case latin != nil && utf8.Valid(latin):
			size = 2 * len(latin)           // each is of two bytes in UTF-8
			again, _ := mend(string(latin)) // it may have happened twice
			note(fmt.Sprintf("%U, of UTF-8 that was read as Latin-1", r), again)
		case r >= 0x80 && r < 0xA0:
			note(fmt.Sprintf("%U", r), windows1252(byte(r)))
		case unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r):
			note(fmt.Sprintf("%U", r), "")
		default:
			out.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	if count > 1 {
		changes += fmt.Sprintf(", and %d more", count-1)
	}
	return out.String(), changes
}

// suspicious reports whether text may need mending.
func suspicious(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || c == 0x7F || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
				return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r)
			})
		}
	}
	return false
}

// latinRun returns the bytes that the text's first characters are in Latin-1, as
// long as they are above ASCII; nil when no control character is among them.
func latinRun(text string) (run []byte) {
	controls := false
	for _, r := range text {
		if r < 0x80 || r > 0xFF {
			break
		}
		controls = controls || r < 0xA0
		run = append(run, byte(r))
	}
	if !controls {
		return nil
	}
	return run
}

// windows1252 returns the character of a byte; empty for the five that have
// none.
func windows1252(c byte) string {
	r := charmap.Windows1252.DecodeByte(c)
	if unicode.IsControl(r) || r == utf8.RuneError {
		return ""
	}
	return string(r)
}
