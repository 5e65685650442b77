package columnar

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// textsOf has one row for each list of values.
func textsOf(values [][]string) TextRows {
	t := TextRows{Starts: []uint32{0}}
	for _, row := range values {
		for _, v := range row {
			t.Data = append(append(t.Data, v...), endValue)
		}
		t.Data = append(t.Data, endColumn)
		t.close()
	}
	return t
}

// corpora are kinds of text, each with tokens that are in no row, in few and in
// most, and across the ends of values.
func corpora(random *rand.Rand) []struct {
	name   string
	row    func(i int) []string
	tokens []string
} {
	bits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	han := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune('一' + rune(random.IntN(20_000)))
		}
		return b.String()
	}
	return []struct {
		name   string
		row    func(i int) []string
		tokens []string
	}{
		{"products", func(i int) []string {
			switch i {
			case 0, 17, 3000, MaxRowGroup - 1:
				return []string{"zq first", "last qz", "é"}
			}
			return []string{fmt.Sprintf("shirt %d", random.IntN(50)), fmt.Sprintf("ab-%04d", i), ""}
		}, []string{"zq", "qz", "z", "zq first", "last qz", "tz", "shirt", "0", "ab-00", "shirt 1", "409", "st", "é", "-", "shirt 49", "b-4", "qq", "~", "3000"}},
		{"random bytes as letters", func(int) []string { return []string{bits(30)} }, []string{"a", "ab", "abc", "+/", "==", "=", "zz", "q9", "nowhere to be found"}},
		{"han", func(i int) []string { return []string{han(i % 9), fmt.Sprint("商品", i)} }, []string{"商", "商品", "商品1", "品4", "1", "00", "一", "丁", "龘"}},
		{"one value", func(int) []string { return []string{"all the same"} }, []string{"all", "a", "e", "the same", "es", "l t", "x"}},
		{"nothing", func(int) []string { return nil }, []string{"a", "ab", "abc"}},
	}
}

// What is found is what bytes.Contains finds in each value, whatever rows are asked
// for, whether the row group is closed or not, and the second time as the first.
func TestSearchInAChunkFindsWhatTheValuesHold(t *testing.T) {
	random, schema := rand.New(rand.NewPCG(7, 8)), MustSchema("some", Column{Name: "name", Type: Text, Search: true})
	for _, corpus := range corpora(random) {
		for _, n := range []int{1, 65, 1000, MaxRowGroup} {
			t.Run(fmt.Sprint(corpus.name, "/", n), func(t *testing.T) {
				values := make([][]string, n)
				for i := range values {
					values[i] = corpus.row(i)
				}
				texts := textsOf(values)
				open, closed := &RowGroup{schema: schema, Text: Texts{texts, {}}}, &RowGroup{schema: schema, Text: Texts{texts, {}}}
				for i, token := range corpus.tokens {
					tokens := [][]byte{[]byte(token)}
					if i%3 == 2 {
						tokens = append(tokens, []byte(corpus.tokens[random.IntN(i)]))
					}
					for _, share := range []int{n / 40, n / 2, n, n} {
						rows := randomRows(random, share, n)
						want := rows
						want.keep(func(row int) bool { return contains(values[row], tokens) })
						for name, g := range map[string]*RowGroup{"open": open, "closed": closed} {
							got := rows
							g.search(tokens, name == "closed", &got)
							if got != want {
								t.Fatalf("%s: search %q in %d rows: %d rows, want %d", name, tokens, rows.Count(), got.Count(), want.Count())
							}
						}
					}
				}
				if o, c := len(open.cache.tokens()), len(closed.cache.tokens()); o != 0 || n > 2*minCachedRows && c == 0 {
					t.Errorf("an open row group caches %d tokens, a closed one %d", o, c)
				}
			})
		}
	}
}

func randomRows(random *rand.Rand, count, of int) (rows RowSet) {
	for range count {
		rows.add(random.IntN(of))
	}
	return rows
}

func contains(values []string, tokens [][]byte) bool {
	return !slices.ContainsFunc(tokens, func(token []byte) bool {
		return !slices.ContainsFunc(values, func(v string) bool { return bytes.Contains([]byte(v), token) })
	})
}
