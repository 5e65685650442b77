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

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
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

func TestWriteOfARowWhoseAnswerIsLostHasSucceeded(t *testing.T) {
	table, b := breakingTable(t, "PutItem")
	org := value.NewID()
	r := createRow(t, table, makeRow(org, makeEndpoint(org, value.NewID()), "", value.TimeOf(time.Now())))
	b.broken.Store(false)
	next := r.Hold(webhook.HeldPaused, r.UpdatedAt)
	if _, err := table.PutDelivery(t.Context(), r, next); err != nil {
		t.Errorf("PutRow: %v, want success", err)
	}
	if !b.broken.Load() {
		t.Error("no answer was lost")
	}
	b.broken.Store(false)
	other := makeRow(org, makeEndpoint(org, value.NewID()), "", value.TimeOf(time.Now()))
	if existing, err := table.CreateDelivery(t.Context(), other); err != nil || existing != nil && existing.ID != other.ID {
		t.Errorf("CreateRow: %+v, %v", existing, err)
	}
}
