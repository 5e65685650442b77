package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
)

// eraseMessages counts the messages of dead letter queues and the park that belong
// to the erasure, by queue, and deletes them on demand; it scans all queues at once.
// Messages of many records of which only some name the customer stay, and are counted
// apart.
func (e *Erasure) eraseMessages(ctx context.Context, found map[string]int, erase bool) (mixed map[string]int, err error) {
	mixed = map[string]int{}
	var mu sync.Mutex
	err = parallel.UntilError(ctx, len(e.Queues), slices.All(e.Queues), func(ctx context.Context, _ int, q *QueueStatus) error {
		if q.purpose == work {
			return nil
		}
		ours, many, err := e.eraseMessagesOf(ctx, NewQueueScan(e.Client, q.url, 0), erase)
		mu.Lock()
		defer mu.Unlock()
		if ours > 0 {
			found[q.Name] += ours
		}
		if many > 0 {
			mixed[q.Name] = many
		}
		return err
	})
	return mixed, err
}

// awaitMessages waits until workers have received every message of the queues of
// deliveries: the first message of a delivery may carry the delivery and its payload.
// It reports false when the queues did not get empty.
func (e *Erasure) awaitMessages(ctx context.Context) (received bool, err error) {
	for range messageLooks {
		visible := 0
		for _, q := range e.Queues {
			if q.purpose == work && strings.Contains(q.Name, deliveriesQueueName) {
				now, err := readQueue(ctx, e.Client, q.url)
				if err != nil {
					return false, err
				}
				visible += now.Visible
			}
		}
		if visible == 0 {
			return true, nil
		}
		if err := e.Pause(ctx, messagePause); err != nil {
			return false, err
		}
	}
	return false, nil
}

// deliveriesQueueName is a part of the names of the queues of deliveries.
const deliveriesQueueName = "DeliveriesQueue"

func (e *Erasure) eraseMessagesOf(ctx context.Context, scan *QueueScan, erase bool) (ours, mixed int, err error) {
	var mu sync.Mutex
	err = scan.Run(ctx, scanWorkers, func(_ context.Context, batch []Message) (done []Message, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range batch {
			switch concerns, single := e.concerns(m); {
			case !concerns:
			case !single:
				mixed++
			default:
				ours++
				if erase {
					done = append(done, m)
				}
			}
		}
		return done, nil
	})
	return ours, mixed, err
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
