package importer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// mend repairs text that was written in one encoding and read in another. Text that is not UTF-8 is read as
// Windows-1252, and so are C1 control characters; UTF-8 that was read as Latin-1 is read again as UTF-8. Other control
// characters, which the service refuses, are taken out. It returns what it did, which is empty when the text was in
// order.
func mend(text string) (mended, changes string) {
	mended = text
	if !utf8.ValidString(mended) {
		mended = validAs1252(mended)
	}
	for strings.ContainsFunc(mended, isC1) {
		again, ok := latin1Bytes(mended)
		if !ok || !utf8.ValidString(again) || again == mended {
			break
		}
		mended = again // it may have happened twice
	}
	mended = strings.Map(func(r rune) rune {
		if isC1(r) {
			r = charmap.Windows1252.DecodeByte(byte(r))
		}
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, mended)
	if mended == text {
		return text, ""
	}
	before, after := []rune(text), []rune(mended)
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	const shown = 20
	return mended, fmt.Sprintf("character %d is in another encoding; from there on it is imported as %q",
		same+1, string(after[same:min(same+shown, len(after))]))
}

func isC1(r rune) bool { return r >= 0x80 && r < 0xA0 }

// validAs1252 reads the bytes that are not UTF-8 as Windows-1252.
func validAs1252(text string) string {
	var out strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			r = charmap.Windows1252.DecodeByte(text[0])
		}
		out.WriteRune(r)
		text = text[size:]
	}
	return out.String()
}

// latin1Bytes returns the bytes that the text is in Latin-1; ok is false when it has other characters.
func latin1Bytes(text string) (latin string, ok bool) {
	latin, err := charmap.ISO8859_1.NewEncoder().String(text)
	return latin, err == nil
}
