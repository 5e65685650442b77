package ops

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// GroupCounts counts messages by group. It is safe for concurrent use.
type GroupCounts[G comparable] struct {
	mu     sync.Mutex
	groups map[G]*GroupCount[G]
}

// GroupCount is the count of one group.
type GroupCount[G any] struct {
	Group    G
	Messages int
	Oldest   time.Time // when the first of them was sent
}

func newGroupCounts[G comparable]() *GroupCounts[G] {
	return &GroupCounts[G]{groups: map[G]*GroupCount[G]{}}
}

func (c *GroupCounts[G]) add(group G, sentAt time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[group] == nil {
		c.groups[group] = &GroupCount[G]{Group: group, Oldest: sentAt}
	}
	g := c.groups[group]
	g.Messages++
	if sentAt.Before(g.Oldest) {
		g.Oldest = sentAt
	}
}

// Sorted returns the largest groups first, equally large ones as compare says.
func (c *GroupCounts[G]) Sorted(compare func(a, b G) int) []GroupCount[G] {
	sorted := make([]GroupCount[G], 0, len(c.groups))
	for _, g := range c.groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b GroupCount[G]) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), compare(a.Group, b.Group))
	})
	return sorted
}

// Shorten keeps the first n characters of a text.
func Shorten(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// FirstLine returns the first line of a text, shortened.
func FirstLine(text string) string {
	const maxCharacters = 300
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Shorten(line, maxCharacters)
}
