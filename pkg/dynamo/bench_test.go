package dynamo_test

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// measured is a table whose calls are measured.
type measured struct {
	*dynamo.Table
	meter  *meter.Meter
	client *dynamodb.Client
	org    value.ID
}

func newMeasured(b *testing.B) *measured {
	b.Helper()
	client, name := dynamotest.Client(b)
	m := &measured{org: value.NewID(), meter: meter.New()}
	m.client = dynamodb.New(client.Options(), m.meter.Measure)
	m.Table = dynamo.New(m.client, name, time.Now)
	return m
}

// incompressible stands for what is compressed already.
func incompressible(size int) []byte {
	body := make([]byte, size)
	rand.Read(body)
	return body
}

// place is where recent changes may live, to be compared.
type place interface {
	add(b *testing.B, body []byte)
	refresh(b *testing.B)               // what a reader does that has seen all so far
	fold(b *testing.B, manifest []byte) // what there is becomes a segment
}

// beside keeps each entry as an item beside the manifest.
type beside struct {
	*measured
	version, last uint64
}

func (p *beside) add(b *testing.B, body []byte) {
	a, err := p.AppendTail(b.Context(), p.org, list, fixed(body))
	if err != nil {
		b.Fatal(err)
	}
	p.last = a.Sequence
}

func (p *beside) refresh(b *testing.B) {
	if err := p.TailAfter(b.Context(), p.org, list, p.last-1, false, func(index.StoredEntry) error { return nil }); err != nil {
		b.Fatal(err)
	}
}

func (p *beside) fold(b *testing.B, manifest []byte) {
	p.version++
	done, err := p.PutManifest(b.Context(), p.org, list, liveManifest, index.StoredManifest{Version: p.version, Covered: p.last, Body: manifest})
	if err != nil || !done {
		b.Fatal(done, err)
	}
}

// inside keeps the entries in the manifest's item. Adding one needs no read:
// the table appends to the list and counts.
type inside struct{ *measured }

func (p *inside) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "IDX#" + p.org.String() + "#" + list},
		"SK": &types.AttributeValueMemberS{Value: "MANIFEST"},
	}
}

func (p *inside) update(b *testing.B, expression string, values map[string]types.AttributeValue) {
	if _, err := p.client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
		TableName: ptr(p.Name()), Key: p.key(), UpdateExpression: &expression, ExpressionAttributeValues: values,
	}); err != nil {
		b.Fatal(err)
	}
}

func (p *inside) add(b *testing.B, body []byte) {
	p.update(b, "SET tail = list_append(tail, :entry) ADD itemVersion :one", map[string]types.AttributeValue{
		":one": &types.AttributeValueMemberN{Value: "1"},
		":entry": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"at":   &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)},
			"body": &types.AttributeValueMemberB{Value: body},
		}}}},
	})
}

func (p *inside) refresh(b *testing.B) {
	if _, err := p.client.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: ptr(p.Name()), Key: p.key()}); err != nil {
		b.Fatal(err)
	}
}

func (p *inside) fold(b *testing.B, manifest []byte) {
	p.update(b, "SET tail = :none, body = :body ADD itemVersion :one", map[string]types.AttributeValue{
		":none": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
		":body": &types.AttributeValueMemberB{Value: manifest}, ":one": &types.AttributeValueMemberN{Value: "1"},
	})
}

// BenchmarkTail compares the places where recent changes may live. Each op is
// a whole cycle: as many changes as a fold takes, and the write of the
// manifest that ends it. Segments cost the same in both and are left out. An
// entry of one change has 200 bytes, one of a hundred 6,000.
func BenchmarkTail(b *testing.B) {
	for _, changes := range []struct{ size, each, entries int }{{200, 1, 128}, {6000, 100, 16}} {
		for _, manifest := range []int{1 << 10, 8 << 10} {
			for _, name := range []string{"beside", "inside"} {
				b.Run(fmt.Sprintf("%s/changes=%d/manifest=%dKB", name, changes.each, manifest>>10), func(b *testing.B) {
					m := newMeasured(b)
					var p place = &beside{measured: m}
					if name == "inside" {
						p = &inside{m}
					}
					p.fold(b, incompressible(manifest))
					m.meter.Reset()
					var records, refreshes, refreshed float64
					for b.Loop() {
						for range changes.entries {
							p.add(b, incompressible(changes.size))
							records += float64(changes.each)
							before := m.meter.Total().Reads
							p.refresh(b)
							refreshes++
							refreshed += m.meter.Total().Reads - before
						}
						p.fold(b, incompressible(manifest))
					}
					b.ReportMetric(m.meter.Total().Writes/records, "WCU/record")
					b.ReportMetric((m.meter.Total().Reads-refreshed)/records, "RCU/record")
					b.ReportMetric(refreshed/refreshes, "RCU/fresh-read")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// BenchmarkChunk compares a chunk that is written over with one that is put
// elsewhere while the old one is removed.
func BenchmarkChunk(b *testing.B) {
	const size = 100 << 10
	b.Run("over", func(b *testing.B) {
		m := newMeasured(b)
		var contentID uint64
		for b.Loop() {
			done, err := m.PutChunk(b.Context(), m.org, list, index.StoredChunk{Number: 1, ContentID: contentID + 1, Body: incompressible(size)}, contentID)
			if err != nil || !done {
				b.Fatal(done, err)
			}
			contentID++
		}
		m.report(b)
	})
	b.Run("elsewhere", func(b *testing.B) {
		m := newMeasured(b)
		put := func(number uint64) {
			done, err := m.PutChunk(b.Context(), m.org, list, index.StoredChunk{Number: number, ContentID: 1, Body: incompressible(size)}, 0)
			if err != nil || !done {
				b.Fatal(done, err)
			}
		}
		var number uint64
		put(number)
		m.meter.Reset()
		for b.Loop() {
			put(number + 1)
			if err := m.DeleteChunk(b.Context(), m.org, list, number, 1); err != nil {
				b.Fatal(err)
			}
			number++
		}
		m.report(b)
	})
}

// BenchmarkJob takes and ends a job: one that is asked for and then done, and
// one that goes on at once each time.
func BenchmarkJob(b *testing.B) {
	b.Run("done", func(b *testing.B) {
		m := newMeasured(b)
		for b.Loop() {
			if err := m.RequestJob(b.Context(), m.org, list, value.TimeOf(time.Now())); err != nil {
				b.Fatal(err)
			}
			m.run(b, nil)
		}
		m.report(b)
	})
	b.Run("continued", func(b *testing.B) {
		m := newMeasured(b)
		now := value.TimeOf(time.Now())
		if err := m.RequestJob(b.Context(), m.org, list, now); err != nil {
			b.Fatal(err)
		}
		m.meter.Reset()
		for b.Loop() {
			m.run(b, &now)
		}
		m.report(b)
	})
}

func (m *measured) run(b *testing.B, next *value.Time) {
	j, err := m.TakeJob(b.Context(), m.org, list, value.TimeOf(time.Now()).Add(time.Minute))
	if err != nil || j == nil {
		b.Fatal(j, err)
	}
	if _, err := m.EndJob(b.Context(), j, next); err != nil {
		b.Fatal(err)
	}
}

func (m *measured) report(b *testing.B) {
	b.ReportMetric(m.meter.Total().Writes/float64(b.N), "WCU/op")
	b.ReportMetric(m.meter.Total().Reads/float64(b.N), "RCU/op")
}
