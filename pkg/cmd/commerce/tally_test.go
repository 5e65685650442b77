package main

import (
	"strings"
	"testing"
	"time"
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

func TestATallyKeepsTheOldestAndABoundedNumberOfGroups(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	found := tally[int]{other: -1}
	for i := range mostGroups + 50 {
		found.add(i, start)
	}
	found.add(7, start.Add(-time.Hour))
	found.add(7, start.Add(time.Hour))
	if got := found.groups[7]; got.n != 3 || !got.oldest.Equal(start.Add(-time.Hour)) {
		t.Errorf("group 7: got %+v, want 3 since an hour before %s", got, start)
	}
	if len(found.groups) != mostGroups+1 || found.groups[-1].n != 50 || found.all != mostGroups+52 {
		t.Errorf("got %d groups, %d others of %d; want %d, 50 of %d", len(found.groups), found.groups[-1].n, found.all, mostGroups+1, mostGroups+52)
	}
	order := found.sorted(func(a, b int) int { return a - b })
	if order[0] != -1 || order[1] != 7 || order[2] != 0 {
		t.Errorf("order: got %v, want the largest first", order[:3])
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
