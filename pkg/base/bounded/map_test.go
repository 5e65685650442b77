package bounded_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/base/bounded"
)

func TestAFullMapBeginsAnew(t *testing.T) {
	m := bounded.New[string, int](2)
	want := func(a, b, c int) {
		t.Helper()
		if got := [3]int{m.Get("a"), m.Get("b"), m.Get("c")}; got != [3]int{a, b, c} {
			t.Errorf("got %v, want %v", got, [3]int{a, b, c})
		}
	}
	want(0, 0, 0)
	m.Set("a", 1)
	m.Set("b", 2)
	m.Set("a", 3)
	want(3, 2, 0)
	m.Set("c", 4)
	want(0, 0, 4)
}
