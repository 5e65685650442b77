package main

import (
	"strings"
	"testing"
)

func TestWhatATerminalWouldObeyIsEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, naïve 茶": "plain, naïve 茶",
		"\x1b[2J":        `\u001b[2J`,
		"a\u009b1mb":     `a\u009b1mb`,
		"a\nb\tc":        `a\u000ab\u0009c`,
		"\U000e0041":     `\udb40\udc41`,
		"a\u202eb":       `a\u202eb`,
		"\xff":           "\ufffd",
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q): got %q, want %q", text, got, want)
		}
	}
}

func TestATableIsAligned(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := writeTable(&out, [][]string{{"A", "B", "C"}, {"long one", "", "x\ty"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "A         B  C\nlong one  -  x\\u0009y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
