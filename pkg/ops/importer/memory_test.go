package importer_test

import (
	"context"
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

// senderFunc is called with every batch, which it forgets.
type senderFunc func()

func (f senderFunc) Send(context.Context, importer.Batch) ([]importer.Refused, error) {
	f()
	return nil, nil
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestReadingHoldsNoMoreOfALongerFile(t *testing.T) {
	const rows, most = 20_000, 2 << 20
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

// BenchmarkImport imports a million rows: -benchtime=1x.
func BenchmarkImport(b *testing.B) {
	const rows = 1_000_000
	for _, format := range []importer.Format{importer.Shopify, importer.CSV} {
		b.Run(string(format), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				source := open(b, format, importer.Stdin)
				source.Input = largeFiles(rows)[format]
				peak := uint64(0)
				to := senderFunc(func() {
					var stats runtime.MemStats
					runtime.ReadMemStats(&stats)
					peak = max(peak, stats.HeapAlloc)
				})
				summary, err := importer.Run(b.Context(), source.Records(), organization, to, importer.Config{})
				if err != nil || summary.Kinds["product"] != rows {
					b.Fatalf("got %v and %v", summary.Kinds, err)
				}
				b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
			}
		})
	}
}
