package ops

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
)

// Keeps reports whether nothing takes messages from the queue but an operator,
// and its URL.
func (q *QueueStatus) Keeps() (url string, keeps bool) { return q.url, q.purpose != work }

// EraseMessages counts the messages of a dead letter queue or the park that
// belong to the erasure, and deletes them on demand. Messages of many records of
// which only some name the customer stay, and are counted apart.
func (e *Erasure) EraseMessages(ctx context.Context, client *sqs.Client, queueURL string, erase bool) (found, mixed int, err error) {
	var matched, many atomic.Int64
	err = NewQueueScan(client, queueURL, 0).Run(ctx, scanWorkers, func(_ context.Context, batch []Message) (done []Message, err error) {
		for _, m := range batch {
			concerns, single := e.concerns(m)
			switch {
			case !concerns:
			case !single:
				many.Add(1)
			default:
				matched.Add(1)
				if erase {
					done = append(done, m)
				}
			}
		}
		return done, nil
	})
	return int(matched.Load()), int(many.Load()), err
}

// concerns reports whether a message belongs to the erasure, and whether nothing
// else is in it.
func (e *Erasure) concerns(m Message) (concerns, single bool) {
	text, ours, single := m.Body, false, true
	if consumer, _ := queue.ParkedBy(m.Attributes); consumer != "" {
		_, record, err := queue.Unpark(m.Body, m.Attributes)
		if err != nil {
			return strings.Contains(strings.ToLower(text), e.Organization.String()) && e.all(), true
		}
		if key := record.Change.Keys["PK"]; key.DataType() == events.DataTypeString {
			ours = strings.HasPrefix(key.String(), "ORG#"+e.Organization.String()+"#")
		}
		raw, _ := json.Marshal(record) // as the park does; it was read from JSON
		text = string(raw)
	} else {
		r := newReject(m)
		ours = strings.EqualFold(r.OrganizationID, e.Organization.String()) ||
			r.Holds == NotJSON && strings.Contains(strings.ToLower(text), e.Organization.String())
		single = r.Holds != ManyRecords
	}
	switch {
	case !ours:
		return false, true
	case e.all():
		return true, true
	}
	return e.mentions(text), single
}

// mentions reports whether a text has one of the ids that are erased.
func (e *Erasure) mentions(text string) bool {
	const length = len("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")
	for i := 0; i+length <= len(text); i++ {
		if text[i+8] != '-' || text[i+13] != '-' {
			continue
		}
		id, err := value.ParseID(strings.ToLower(text[i : i+length]))
		if err == nil && (e.known.Objects[id] || e.known.Events[id] || e.known.Deliveries[id]) {
			return true
		}
	}
	return false
}
