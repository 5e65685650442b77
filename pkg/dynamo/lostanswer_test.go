package dynamo_test

import (
	"io"
	"net"
	"net/http"
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

// breaking loses the answer to the next request of an operation, after the
// server has carried it out, as some broken connections do: the SDK tries
// again.
type breaking struct {
	operation string
	broken    atomic.Bool
	after     func() // what others do before the SDK tries again
}

func (b *breaking) Do(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+b.operation) && b.broken.CompareAndSwap(false, true) {
		resp.Body.Close()
		resp.Body = io.NopCloser(lost{})
		if b.after != nil {
			b.after()
		}
	}
	return resp, err
}

type lost struct{}

func (lost) Read([]byte) (int, error) { return 0, net.ErrClosed }

func breakingTable(t *testing.T, operation string) (*dynamo.Table, *breaking) {
	t.Helper()
	client, name := dynamotest.Client(t)
	b := &breaking{operation: operation}
	b.broken.Store(true)
	return dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = b
		o.Retryer = promptRetryer()
	}), name, time.Now), b
}

// promptRetryer tries again almost at once.
func promptRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
}

func TestAWriteWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	table, b := breakingTable(t, "PutItem")
	org, now := value.NewID(), value.TimeOf(time.Now())
	rows := manyRows(org, 2, now)
	createRow(t, table, rows[0])
	requested := &idempotency.Record{Key: idempotency.NewKey(org, "user", "k"), Token: 1, ExpiresAt: now.Add(time.Hour)}
	for name, write := range map[string]func() (done bool, err error){
		"entry of a tail": func() (bool, error) { return appendTail(t, table, org, "x").Sequence == 1, nil },
		"chunk": func() (bool, error) {
			return table.PutChunk(t.Context(), org, list, index.StoredChunk{Number: 1, ContentID: 1}, 0)
		},
		"manifest": func() (bool, error) {
			return table.PutManifest(t.Context(), org, list, liveManifest, index.StoredManifest{Version: 1})
		},
		"permit": func() (bool, error) {
			return table.TakePermit(t.Context(), org, org, "a", now, now.Add(time.Minute))
		},
		"request": func() (bool, error) {
			_, done, err := table.PutRequest(t.Context(), requested, 0)
			return done, err
		},
		"change of a delivery": func() (bool, error) {
			_, err := table.PutDelivery(t.Context(), rows[0], rows[0].Hold(webhook.HeldPaused, now))
			return true, err
		},
		"new delivery": func() (bool, error) { // it may be told to exist
			existing, err := table.CreateDelivery(t.Context(), rows[1])
			return existing == nil || existing.ID == rows[1].ID, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b.broken.Store(false)
			if done, err := write(); !done || err != nil || !b.broken.Load() {
				t.Errorf("done %t, %v; an answer was lost: %t", done, err, b.broken.Load())
			}
		})
	}
	if entries := readTail(t, table, org, 0); len(entries) != 1 {
		t.Errorf("the tail has %d entries, want 1", len(entries))
	}
}
