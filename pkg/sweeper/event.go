package sweeper

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Event is what invokes the function: messages of the index jobs' queue, or
// the event of the schedule, which has none.
type Event struct {
	Records []events.SQSMessage `json:"Records"`
}

// Handle is one invocation. The schedule gets no answer; of messages it tells
// which are to come again.
func (s *Sweeper) Handle(ctx context.Context, event Event) (*events.SQSEventResponse, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if len(event.Records) == 0 {
		return nil, s.sweep(ctx)
	}
	return s.runIndexJobs(ctx, event.Records), nil
}
