package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/pause"
)

// peaks is the most that was seen of the queues of deliveries.
type peaks struct {
	mu                sync.Mutex
	inFlight, delayed map[string]int // at most, by queue
	together, visible int            // at most, of both: in flight, and visible
	last              queueState     // both, at the last look
}

// watch looks four times a second until ctx ends.
func (p *peaks) watch(ctx context.Context, client *sqs.Client) {
	const interval = 250 * time.Millisecond
	for pause.For(ctx, interval) == nil {
		queues, err := readQueues(ctx, client)
		if err == nil {
			p.add(queues)
		}
	}
}

func (p *peaks) add(queues []queueState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight == nil {
		p.inFlight, p.delayed = map[string]int{}, map[string]int{}
	}
	p.last = queueState{}
	for i := range queues {
		q := &queues[i]
		if !q.carries() {
			continue
		}
		p.inFlight[q.name], p.delayed[q.name] = max(p.inFlight[q.name], q.inFlight), max(p.delayed[q.name], q.delayed)
		p.last.visible, p.last.inFlight, p.last.delayed = p.last.visible+q.visible, p.last.inFlight+q.inFlight, p.last.delayed+q.delayed
	}
	p.together, p.visible = max(p.together, p.last.inFlight), max(p.visible, p.last.visible)
}

// backlog is how many messages were visible at the last look.
func (p *peaks) backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.visible
}
