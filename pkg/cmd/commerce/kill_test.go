//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
)

// write sends records until all are acknowledged, however often the queue
// goes away meanwhile.
func (s *ownService) write(t *testing.T, ids []value.ID, done func(n int)) {
	t.Helper()
	endpoint, queue, org := s.SQSEndpoint, s.RecordsQueueURL, s.OrganizationID
	client, err := newSQSClient(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	const perMessage = 10
	for start := 0; start < len(ids); start += perMessage {
		var records []string
		for _, id := range ids[start:min(start+perMessage, len(ids))] {
			records = append(records, fmt.Sprintf(`{"kind":"product","op":"put","version":1,"record":{"id":%q,"name":"p"}}`, id))
		}
		body := fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, org, strings.Join(records, ","))
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String(body)})
			cancel()
			if err == nil {
				break
			}
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		done(start + len(records))
	}
}

func TestEveryEventIsDeliveredThoughEverythingIsKilled(t *testing.T) {
	t.Parallel()
	const records, kills = 2000, 4
	s := newOwnService(t)
	s.start(t)
	r := s.subscribe(t, "product.created")

	ids := make([]value.ID, records)
	for i := range ids {
		ids[i] = value.NewID()
	}
	progress := make(chan int, records)
	go func() {
		defer close(progress)
		s.write(t, ids, func(n int) { progress <- n })
	}()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	next, killed := records/(kills+1), 0
	for n := range progress {
		if n >= next && killed < kills {
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			s.kill(t)
			s.start(t)
			killed++
			next += records / (kills + 1)
		}
	}
	if killed != kills {
		t.Fatalf("killed %d times, want %d", killed, kills)
	}

	await(t, "every product at the receiver", func() bool { return len(unique(r)) == records })
	await(t, "every event delivered", func() bool {
		time.Sleep(250 * time.Millisecond) // a user has 600 requests a minute
		var pending, delivered page
		s.history(t, "/developers/webhooks/events?limit=1&status=PENDING", &pending)
		s.history(t, "/developers/webhooks/events?limit=1&status=DELIVERED", &delivered)
		return pending.Meta.Total == 0 && delivered.Meta.Total == records
	})
	if got := s.commerce(t, "verify"); !strings.HasPrefix(got, "no differences in ") {
		t.Errorf("lists and table: got %q, want no differences", got)
	}
	t.Logf("%d events of %d records over %d kills", len(r.Events()), records, kills)
}
