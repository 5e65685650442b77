package dynamo_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// meddling lets others act once, in front of the next of some writes or behind it; in
// that case the answer is lost, so that the SDK writes again.
type meddling struct {
	operations []string
	act        func()
	behind     bool
	armed      atomic.Bool
}

func (m *meddling) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !slices.Contains(m.operations, operation) || !m.armed.CompareAndSwap(true, false) {
		return http.DefaultTransport.RoundTrip(r)
	}
	if !m.behind {
		m.act()
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && m.behind {
		resp.Body.Close()
		resp.Body, resp.StatusCode = http.NoBody, http.StatusInternalServerError
		m.act()
	}
	return resp, err
}

// table is the table as one has it with whom others meddle.
func (m *meddling) table(client *dynamodb.Client, name string, now func() time.Time) *dynamo.Table {
	return dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.Retryer = m, promptRetryer()
	}), name, now)
}

// breakingTable returns a table that loses the answer to the next request of an
// operation, once that is armed.
func breakingTable(t *testing.T, operations ...string) (*dynamo.Table, *meddling) {
	t.Helper()
	client, name := dynamotest.Client(t)
	m := &meddling{operations: operations, behind: true, act: func() {}}
	return m.table(client, name, time.Now), m
}

// promptRetryer tries again almost at once.
func promptRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
}

func TestAWriteWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	table, b := breakingTable(t, "PutItem", "UpdateItem")
	org, now := value.NewID(), value.TimeOf(time.Now())
	rows := manyRows(org, 2, now)
	createRow(t, table, rows[0])
	requested := &idempotency.Record{Key: idempotency.NewKey(org, "user", "k"), Token: 1, ExpiresAt: now.Add(time.Hour)}
	record := manyRecords(org, 1, now)
	for name, write := range map[string]func() (done bool, err error){
		"record":          func() (bool, error) { return true, table.CreateRecords(t.Context(), record)[0] },
		"entry of a tail": func() (bool, error) { return appendTail(t, table, org, "x").Sequence == 1, nil },
		"chunk": func() (bool, error) {
			return table.PutChunk(t.Context(), org, list, index.StoredChunk{Number: 1, ContentID: 1}, 0)
		},
		"manifest": func() (bool, error) {
			return table.PutManifest(t.Context(), org, list, liveManifest, index.StoredManifest{Version: 1})
		},
		"permit": func() (bool, error) {
			return table.TakePermit(t.Context(), slotTaker{t, table, org, org}.request("a", now))
		},
		"wait": func() (bool, error) {
			return table.BeginWait(t.Context(), org, value.NewID(), 1, now, now+1)
		},
		"request": func() (bool, error) {
			_, done, err := table.PutRequest(t.Context(), requested, 0)
			return done, err
		},
		"change of a delivery": func() (bool, error) {
			_, err := table.PutDelivery(t.Context(), rows[0], rows[0].Hold(webhook.HeldPaused, now))
			return true, err
		},
		"new delivery": func() (bool, error) {
			_, err := table.PutDelivery(t.Context(), rows[1].StoredAt(0), rows[1])
			return true, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b.armed.Store(true)
			if done, err := write(); !done || err != nil || b.armed.Load() {
				t.Errorf("done %t, %v; an answer was lost: %t", done, err, !b.armed.Load())
			}
		})
	}
	if entries := readTail(t, table, org, 0); len(entries) != 1 {
		t.Errorf("the tail has %d entries, want 1", len(entries))
	}
}
