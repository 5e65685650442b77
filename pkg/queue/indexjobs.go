package queue

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// IndexJob says that the index of a list has work to be done.
type IndexJob struct {
	OrganizationID value.ID `json:"organizationId"`
	List           string   `json:"list"`
}

// IndexJobs is the queue that starts the jobs of the index. A message asks
// for a look, not for a certain piece of work: one too many finds nothing to
// do. Each organization is a group, so that one whose index is rebuilt does
// not delay the others.
type IndexJobs struct{ queue *Queue }

// NewIndexJobs returns the jobs in the queue.
func NewIndexJobs(q *Queue) IndexJobs { return IndexJobs{q} }

// Send starts a job for an organization's list.
func (j IndexJobs) Send(ctx context.Context, org value.ID, list string) error {
	body, err := json.Marshal(IndexJob{org, list})
	if err != nil {
		return fmt.Errorf("write an index job: %w", err)
	}
	return j.queue.Send(ctx, Message{Body: string(body), Group: org.String()})
}

// ParseIndexJob reads the message of an index job.
func ParseIndexJob(body string) (IndexJob, error) {
	var job IndexJob
	if err := json.Unmarshal([]byte(body), &job); err != nil {
		return IndexJob{}, fmt.Errorf("index job: %w", err)
	}
	if job.OrganizationID.IsZero() || job.List == "" {
		return IndexJob{}, fmt.Errorf("index job %q: organization or list is missing", body)
	}
	return job, nil
}
