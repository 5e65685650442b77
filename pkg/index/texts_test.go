package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Rare and common tokens, in the first row, the last and across the ends of values,
// are found as bytes.Contains finds them in each value.
func TestSearchInAFullChunkFindsWhatTheValuesHold(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	texts, values := newTexts(), make([][2]string, chunkRows)
	for i := range values {
		values[i] = [2]string{fmt.Sprintf("shirt %d", random.IntN(50)), fmt.Sprintf("ab-%04d", i)}
		switch i {
		case 0, 17, chunkRows - 1:
			values[i] = [2]string{"zq first", "last qz"}
		}
		for _, v := range values[i] {
			texts.data = append(append(append(texts.data, v...), endValue), endColumn)
		}
		texts.close()
	}
	signature := sign(&texts)
	for _, tokens := range [][][]byte{
		{[]byte("zq")},
		{[]byte("qz")},
		{[]byte("z")},
		{[]byte("zq first")},
		{[]byte("last qz")},
		{[]byte("tz")},
		{[]byte("shirt")},
		{[]byte("0")},
		{[]byte("ab-00"), []byte("shirt 1")},
		{[]byte("409")},
		{[]byte("st"), []byte("qz")},
	} {
		for _, rows := range []rowset{everyRow(), someRows(chunkRows), someRows(100)} {
			want := rows
			for i, v := range values {
				for _, token := range tokens {
					if !bytes.Contains([]byte(v[0]), token) && !bytes.Contains([]byte(v[1]), token) {
						want.drop(i)
					}
				}
			}
			got, passed := rows, rows
			texts.search(tokens, &got)
			if got != want {
				t.Errorf("search %q: %d rows, want %d", tokens, got.count(), want.count())
			}
			signature.pass(grams(tokens), &passed)
			if got.without(&passed); !got.empty() {
				t.Errorf("search %q: the signature refuses %d rows that hold it", tokens, got.count())
			}
		}
	}
}

func everyRow() (rows rowset) {
	for i := range chunkRows {
		rows.add(i)
	}
	return rows
}
