package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
)

// mostGroups bounds a tally, whose groups come from what others have written.
const mostGroups = 1000

// tally counts messages by group. It is safe for concurrent use.
type tally[G comparable] struct {
	other G // of what comes after mostGroups others

	mu     sync.Mutex
	groups map[G]*counts
	all    int
}

type counts struct {
	n      int
	oldest time.Time // when the first of them was sent
}

func (t *tally[G]) add(group G, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups == nil {
		t.groups = map[G]*counts{}
	}
	if t.groups[group] == nil && len(t.groups) >= mostGroups {
		group = t.other
	}
	if t.groups[group] == nil {
		t.groups[group] = &counts{oldest: sent}
	}
	c := t.groups[group]
	c.n++
	if sent.Before(c.oldest) {
		c.oldest = sent
	}
	t.all++
}

// sorted returns the groups, the largest first and equal ones in the order of
// less.
func (t *tally[G]) sorted(compare func(a, b G) int) []G {
	return slices.SortedFunc(maps.Keys(t.groups), func(a, b G) int {
		return cmp.Or(cmp.Compare(t.groups[b].n, t.groups[a].n), compare(a, b))
	})
}

// writeTable aligns the cells of rows, the first of which is the head.
func writeTable(out io.Writer, rows [][]string) error {
	const gap = 2
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if row[i] = visible(cell); cell == "" {
				row[i] = "-"
			}
		}
		if _, err := io.WriteString(w, strings.Join(row, "\t")+"\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}

// visible makes what others have written safe to be shown on a terminal: what
// is not printed becomes an escape of JSON.
func visible(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				out.WriteByte("0123456789abcdef"[unit>>shift&15])
			}
		}
	}
	return out.String()
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// firstLine keeps of a text what fits into a line of a list.
func firstLine(text string) string {
	const most = 300
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cut(line, most)
}

// timeCell shows when something was; "" when that is not known.
func timeCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime + "Z")
}
