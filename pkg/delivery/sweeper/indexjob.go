package sweeper

import (
	"context"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/queue"
)

// maxIndexJobs is the due index jobs of each partition that one run starts.
// The next run sends them again while they wait to be taken; the bound keeps
// that cheap however many there are.
const maxIndexJobs = 32

// IndexQueue starts index jobs.
type IndexQueue interface {
	Send(ctx context.Context, org value.ID, list string) error
}

// Compactor works on the index of a list. Run does one piece of work, of a
// bounded size, and reports whether there is more; it does nothing when another
// one works on the list.
type Compactor interface {
	Run(ctx context.Context, org value.ID, list string) (more bool, err error)
}

// IndexCompaction is where index jobs are started, and what does them.
type IndexCompaction struct {
	IndexQueue
	Compactor
}

// startIndexJobs sends the messages of the index jobs that are due: jobs whose
// message was lost, and jobs that were asked for a later time.
func (s *Sweeper) startIndexJobs(ctx context.Context) error {
	return eachPartition(func(shard int) error {
		due, err := s.store.DueJobs(ctx, shard, s.now(), maxIndexJobs)
		if err == nil {
			err = parallel.UntilError(ctx, maxWrites, slices.All(due), func(ctx context.Context, _ int, job index.Job) error {
				return s.index.Send(ctx, job.OrganizationID, job.List)
			})
		}
		return s.failed(ctx, err, "indexJobShard", shard)
	})
}

// runIndexJobs does one piece of work for each message. The queue delivers a
// message whose work failed again, and moves it to the dead letters at last.
func (s *Sweeper) runIndexJobs(ctx context.Context, messages []events.SQSMessage) *events.SQSEventResponse {
	response := &events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i := range messages {
		if err := s.runIndexJob(ctx, &messages[i]); err != nil {
			s.logger.ErrorContext(ctx, "index job failed", "messageId", messages[i].MessageId, "body", messages[i].Body, "error", err)
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: messages[i].MessageId})
		}
	}
	return response
}

// runIndexJob leaves the rest of a job to another message, so that no
// organization delays the others. When that message cannot be sent, this one
// is delivered again.
func (s *Sweeper) runIndexJob(ctx context.Context, message *events.SQSMessage) error {
	job, err := queue.ParseIndexJob(message.Body)
	if err != nil {
		return err
	}
	started := s.clock()
	more, err := s.index.Run(ctx, job.OrganizationID, job.List)
	if err != nil {
		return err
	}
	s.logger.InfoContext(ctx, "index job done", "organizationId", job.OrganizationID, "list", job.List,
		"more", more, "ms", s.clock().Sub(started).Milliseconds())
	if more {
		err = s.index.Send(ctx, job.OrganizationID, job.List)
	}
	return err
}
