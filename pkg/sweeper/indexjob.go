package sweeper

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
)

// indexJobPage is the due index jobs of each partition that one run starts.
// They are sent again in the next run while they wait to be taken, which a
// bound keeps cheap however many there are.
const indexJobPage = 32

// DueIndexJobs finds the index jobs that are due, the longest due first.
type DueIndexJobs interface {
	DueJobs(ctx context.Context, shard int, now value.Time, limit int) ([]index.Job, error)
}

// IndexQueue starts index jobs.
type IndexQueue interface {
	Send(ctx context.Context, org value.ID, list string) error
}

// Maintainer works on the index of a list. Run does one piece of work, of a
// bounded size, and tells whether there is more; nothing when another one is
// at it or nothing is to be done.
type Maintainer interface {
	Run(ctx context.Context, org value.ID, list string) (more bool, err error)
}

// startIndexJobs sends the messages of the index jobs of one partition that
// are due: those whose message was lost, and those that only time brings.
func (s *Sweeper) startIndexJobs(ctx context.Context, shard int, found *findings) error {
	due, err := s.store.DueJobs(ctx, shard, value.TimeOf(s.cfg.Clock()), indexJobPage)
	if err != nil {
		return err
	}
	err = each(ctx, due, func(ctx context.Context, _ int, job index.Job) error {
		return s.index.Send(ctx, job.OrganizationID, job.List)
	})
	if err != nil {
		return err
	}
	found.add(&found.indexJobs, len(due))
	return nil
}

// runIndexJobs does one piece of work for each message. A message whose work
// failed comes again, at the end to the dead letters.
func (s *Sweeper) runIndexJobs(ctx context.Context, messages []events.SQSMessage) *events.SQSEventResponse {
	response := &events.SQSEventResponse{}
	for i := range messages {
		if err := s.runIndexJob(ctx, &messages[i]); err != nil {
			s.cfg.Logger.ErrorContext(ctx, "index job failed", "messageId", messages[i].MessageId, "body", messages[i].Body, "error", err)
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: messages[i].MessageId})
		}
	}
	return response
}

// runIndexJob leaves what is left of a job to another message, so that no
// organization keeps the others waiting. Should that one not be sent, this
// one comes again.
func (s *Sweeper) runIndexJob(ctx context.Context, message *events.SQSMessage) error {
	job, err := sqsqueue.ParseIndexJob(message.Body)
	if err != nil {
		return err
	}
	started := s.cfg.Clock()
	more, err := s.index.Run(ctx, job.OrganizationID, job.List)
	if err != nil {
		return err
	}
	s.cfg.Logger.InfoContext(ctx, "index job done", "organizationId", job.OrganizationID, "list", job.List,
		"more", more, "ms", s.cfg.Clock().Sub(started).Milliseconds())
	if !more {
		return nil
	}
	if err := s.index.Send(ctx, job.OrganizationID, job.List); err != nil {
		return fmt.Errorf("go on with an index job: %w", err)
	}
	return nil
}
