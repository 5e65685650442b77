package gateway

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWildcardsMatchAsTheirRegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab/*")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 0, 8, -1).Draw(t, "name")
		want := regexp.MustCompile(`\A(?:` + strings.ReplaceAll(pattern, "*", ".*") + `)\z`).MatchString(name)
		if got := wildcard(pattern, name); got != want {
			t.Fatalf("wildcard(%q, %q) = %t, want %t", pattern, name, got, want)
		}
	})
}

func TestPolicyCacheIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	cache := &policyCache{clock: func() time.Time { return now }, decisions: map[string]cachedDecision{}}
	cache.put("short", decision{}, time.Second)
	for i := range maxPolicies - 1 {
		cache.put(fmt.Sprint(i), decision{}, time.Minute)
	}
	now = now.Add(2 * time.Second)
	cache.put("one more", decision{}, time.Minute)
	if _, ok := cache.get("0"); !ok || len(cache.decisions) != maxPolicies {
		t.Errorf("live decisions were dropped while expired ones could go: %d decisions", len(cache.decisions))
	}
	cache.put("and another", decision{}, time.Minute)
	if _, ok := cache.get("and another"); !ok || len(cache.decisions) > maxPolicies {
		t.Errorf("a full cache has %d decisions, the newest kept: %t", len(cache.decisions), ok)
	}
}
