// Package fold brings text to the one form in which the service compares,
// orders and searches it. It promises that folding is idempotent, that it works
// rune by rune (the fold of a concatenation is the concatenation of the folds, so
// a part of a text folds to a part of the folded text), that what it returns is
// valid UTF-8, and that text which is folded already costs one pass and no
// allocation. Where a text is cut into fields, stored or searched is left to
// others.
package fold

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// String folds s: compatibility decomposition (NFKD), marks dropped (the whole
// Unicode category M), full case folding, and then the letters that Unicode keeps
// apart but people type without their stroke: ı→i ø→o ł→l đ→d æ→ae œ→oe ß→ss.
// Invalid UTF-8 becomes U+FFFD.
//
// Folded text can be empty though s is not (a lone mark), and can be longer than
// s: up to eleven times its bytes, for one Arabic ligature; a Hangul syllable
// takes up to three times its own.
func String(s string) string {
	switch classify(s) {
	case folded:
		return s
	case ascii:
		return strings.ToLower(s)
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = cases.Fold().String(withoutMarks(norm.NFKD.String(s)))
	if classify(s) == folded {
		return s
	}
	return strokes.Replace(strings.Map(cherokee, s))
}

// Tokens splits a search at white space and folds each part. Parts that fold to
// nothing are dropped, and so are repetitions; the order is that of q. A token
// can contain a space where a character decomposes into one.
func Tokens(q string) []string {
	parts := strings.Fields(q)
	tokens := parts[:0]
	for _, p := range parts {
		t := strings.TrimSpace(String(p))
		if t != "" && !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

type class uint8

const (
	folded class = iota // ASCII without capitals
	ascii               // ASCII
	other
)

func classify(s string) class {
	c := folded
	for i := range len(s) {
		b := s[i]
		if b >= utf8.RuneSelf {
			return other
		}
		if 'A' <= b && b <= 'Z' {
			c = ascii
		}
	}
	return c
}

func withoutMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && unicode.Is(unicode.M, r) {
			return -1
		}
		return r
	}, s)
}

// strokes are the letters of String's list. Capitals of them do not occur: they
// are folded before.
var strokes = strings.NewReplacer("ı", "i", "ø", "o", "ł", "l", "đ", "d", "æ", "ae", "œ", "oe")

// cherokee mends a letter of Cherokee, whose small letters fold to the capitals:
// cases.Fold (x/text 0.43) exchanges the two.
func cherokee(r rune) rune {
	if 'Ꭰ' <= r && r <= 'ᏽ' || 'ꭰ' <= r && r <= 'ꮿ' {
		return unicode.ToUpper(r)
	}
	return r
}
