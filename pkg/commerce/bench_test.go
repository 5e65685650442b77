package commerce

import (
	"fmt"
	"strings"
	"testing"
)

// benchOrder is an order of n items, as a back office sends it.
func benchOrder(n int) Change {
	item := `{"productId":"0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5","sku":"CUP-080-W","name":"Espresso cup","quantity":4,` +
		`"unitPrice":8.9,"discountAmount":3.6,"taxRate":20,"attributes":{"color":"white"}}`
	record := string(overlay([]byte(exampleRecords[KindOrder]), `{"items":[`+strings.TrimSuffix(strings.Repeat(item+",", n), ",")+`]}`))
	return put(KindOrder, record)
}

func benchChanges() map[string]Change {
	return map[string]Change{
		"product":  put(KindProduct, exampleRecords[KindProduct]),
		"order":    benchOrder(3),
		"bigOrder": benchOrder(200),
		"invoice":  put(KindInvoice, exampleRecords[KindInvoice]),
	}
}

func eachBench(b *testing.B, run func(b *testing.B, c Change)) {
	b.Helper()
	for name, c := range benchChanges() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, c)
		})
	}
}

func BenchmarkApply(b *testing.B) {
	eachBench(b, func(b *testing.B, c Change) {
		b.SetBytes(int64(len(c.Record)))
		for b.Loop() {
			store(b, nil, c, testNow)
		}
	})
}

func BenchmarkEvents(b *testing.B) {
	eachBench(b, func(b *testing.B, c Change) {
		old := store(b, nil, c, testNow)
		c.Record = overlay(c.Record, `{"createdAt":"2020-01-01"}`)
		next := store(b, old, c, testNow)
		b.SetBytes(int64(len(next.Doc)))
		for b.Loop() {
			events, err := Events(old, next)
			if err != nil || len(events) != 1 {
				b.Fatal(fmt.Sprint(events), err)
			}
		}
	})
}

func BenchmarkEventTypes(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		EventTypes(alertSamples())
	}
}
