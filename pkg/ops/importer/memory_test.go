package importer_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/commerce-integration/service/pkg/ops/importer"
)

// generated is a CSV file of so many rows that nothing holds whole.
type generated struct {
	header string
	row    func(n int) string
	rows   int

	next int
	rest string
}

func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		switch {
		case g.next > g.rows:
			return 0, io.EOF
		case g.next == 0:
			g.rest = g.header
		default:
			g.rest = g.row(g.next)
		}
		g.next++
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// largeFiles are a product file of a shop system, whose products have ten
// variants each, and a mapped one.
func largeFiles(rows int) map[importer.Format]*generated {
	return map[importer.Format]*generated{
		importer.Shopify: {rows: rows, header: shopifyHeader, row: func(n int) string {
			return fmt.Sprintf("mug-%d,Mug,<p>Clay</p>,Potter,\"a, b\",true,Size,%d,,,M-%d,9.99,true,http://x/%d.jpg,false,,4.5\n", n/10, n%10, n, n)
		}},
		importer.CSV: {rows: rows, header: "Art-Nr;Name;Preis;Gruppe;Marke;Farbe;Lager\n", row: func(n int) string {
			return fmt.Sprintf("A-%d;Mug;1.299,90;Kitchen > Mugs;Potter;blue;4\n", n)
		}},
	}
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestReadingHoldsNoMoreOfALongerFile(t *testing.T) {
	const rows, most = 10_000, 1 << 20
	for format, file := range largeFiles(rows) {
		t.Run(string(format), func(t *testing.T) {
			source := open(t, format, importer.Stdin)
			source.Input = file
			var early, late uint64
			n := 0
			for _, err := range source.Records() {
				if err != nil {
					t.Fatal(err)
				}
				switch n++; n {
				case rows / 6:
					early = liveHeap()
				case rows - 1_000:
					late = liveHeap()
				}
			}
			if n < rows {
				t.Fatalf("got %d records of %d rows", n, rows)
			}
			if late > early+most {
				t.Errorf("the heap grew from %d to %d bytes", early, late)
			}
		})
	}
}
