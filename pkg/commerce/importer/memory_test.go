package importer_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/commerce/importer"
)

// largeFiles are a product file of a shop system, whose products have ten
// variants each, and a mapped one.
func largeFiles(rows int) map[importer.Format]string {
	var shop, mapped strings.Builder
	shop.WriteString(shopifyHeader)
	mapped.WriteString("Art-Nr;Name;Preis;Gruppe;Marke;Farbe;Lager\n")
	for n := range rows {
		fmt.Fprintf(&shop, "mug-%d,Mug,<p>Clay</p>,Potter,\"a, b\",true,Size,%d,,,M-%d,9.99,true,http://x/%d.jpg,false,,4.5\n", n/10, n%10, n, n)
		fmt.Fprintf(&mapped, "A-%d;Mug;1.299,90;Kitchen > Mugs;Potter;blue;4\n", n)
	}
	return map[importer.Format]string{importer.Shopify: shop.String(), importer.CSV: mapped.String()}
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestReadingHoldsNoMoreOfALongerFile(t *testing.T) {
	const rows, most = 10_000, 1 << 20
	for format, text := range largeFiles(rows) {
		t.Run(string(format), func(t *testing.T) {
			source := open(t, format, writeFile(t, "x.csv", text))
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
