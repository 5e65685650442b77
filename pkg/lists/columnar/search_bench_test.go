package columnar_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// BenchmarkFirstSearch searches for tokens as if for the first time: in a view that
// was never searched, which has to be signed, and in one that knows other tokens.
func BenchmarkFirstSearch(b *testing.B) {
	for _, row := range []struct {
		name       string
		onlyTokens bool
	}{{"Signing", false}, {"Signed", true}} {
		for _, tokens := range []string{"004321", "zq", "00", "e", "cotton", "000", "er 00 -0", "4000 -0 000", "organic cotton shirt"} {
			for _, size := range []int{100_000, 1_000_000} {
				b.Run(fmt.Sprintf("%d/%s/%s", size, row.name, strings.ReplaceAll(tokens, " ", "+")), func(b *testing.B) {
					v := productView(b, size)
					q := columnar.Query{Search: strings.Fields(tokens), OrderBy: 7, Limit: 20}
					times := make(durations, 0, 1024)
					b.ReportAllocs()
					for b.Loop() {
						b.StopTimer()
						columnar.ForgetSearches(v, row.onlyTokens)
						b.StartTimer()
						start := time.Now()
						v.Query(q)
						times = append(times, time.Since(start))
					}
					times.report(b)
				})
			}
		}
	}
}
