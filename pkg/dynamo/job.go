package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/value"
)

// JobShards is the number of partitions that jobs are spread over.
const JobShards = shards

// Attributes of a job. GSI1 holds it by a mark: the time at which it was or
// will be due. The mark is not moved for what is over in seconds anyway, since
// moving it costs two write units: neither when somebody takes the job nor
// when the next run is due at once.
const (
	attrAsked  = "asked"
	attrDue    = "due"
	attrLease  = "lease"
	attrHolder = "holder"
)

// jobState is a job as it is stored. The zero state is none.
type jobState struct {
	asked  int64
	due    value.Time // 0: it has not been asked for since it was taken
	holder uint64     // 0: nobody has it
	lease  value.Time // until when the holder has it
	marked value.Time // its place in GSI1
	write  uint64     // new with every write
}

// AskJob asks for a run of the list's job that starts at due or later, and
// after this call. The earlier of two times stands.
func (t *IndexStore) RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error {
	return t.changeJob(ctx, org, list, func(s jobState) (jobState, bool) {
		s.asked++
		s.setDue(due)
		if s.holder == 0 && (s.marked == 0 || s.due < s.marked) {
			s.marked = s.due
		}
		return s, true
	})
}

// setDue keeps the earlier of two times.
func (s *jobState) setDue(due value.Time) {
	if s.due == 0 || due < s.due {
		s.due = max(due, 1)
	}
}

// TakeJob takes the list's job until the given time; nil when there is none,
// it is not due, or another has it. Once the time is over another may take
// it, so that what a holder that died has left is done.
func (t *IndexStore) TakeJob(ctx context.Context, org value.ID, list string, until value.Time) (*index.Job, error) {
	holder := newMark()
	var taken *index.Job
	err := t.changeJob(ctx, org, list, func(s jobState) (jobState, bool) {
		if s.holder == holder {
			return s, false // it was taken, and the answer was lost
		}
		taken = nil
		from := s.due
		if s.holder != 0 {
			from = s.lease
		}
		if s == (jobState{}) || from > value.TimeOf(t.now()) {
			return s, false
		}
		taken = &index.Job{OrganizationID: org, List: list, Requests: s.asked, Holder: holder}
		s.holder, s.lease, s.due = holder, until, 0
		return s, true
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// EndJob gives the job back, to run again at next or when it was asked for
// meanwhile, and tells whether that is now; otherwise it is forgotten. When the
// lease was over and another has taken the job, nothing happens.
func (t *IndexStore) EndJob(ctx context.Context, j *index.Job, next *value.Time) (due bool, err error) {
	err = t.changeJob(ctx, j.OrganizationID, j.List, func(s jobState) (jobState, bool) {
		due = false
		switch {
		case s.holder != j.Holder:
			return s, false
		case next != nil:
			s.setDue(*next)
		case s.asked == j.Requests:
			return jobState{}, true
		}
		s.holder, s.lease = 0, 0
		if due = s.due <= value.TimeOf(t.now()); !due {
			s.marked = s.due
		}
		return s, true
	})
	return due && err == nil, err
}

// DueJobs lists up to limit jobs of a shard that are due by now, the longest
// due first. Some may be taken already: the index that it reads follows the
// table within a moment, and knows neither that nor how often they were asked
// for.
func (t *IndexStore) DueJobs(ctx context.Context, shard int, now value.Time, limit int) ([]index.Job, error) {
	var found []index.Job
	in := timed(jobShard(shard), behind(""), (now + 1).String(), limit)
	err := t.query(ctx, in, func(it item) (bool, error) {
		j, err := decodeDueJob(it)
		if err == nil {
			found = append(found, j)
		}
		return len(found) < limit, err
	})
	return found, err
}

func decodeDueJob(it item) (index.Job, error) {
	pk := getString(it, attrPK)
	parts := strings.SplitN(pk, "#", 3)
	if len(parts) < 3 {
		return index.Job{}, fmt.Errorf("a job of the unknown list %q", pk)
	}
	org, err := value.ParseID(parts[1])
	if err != nil {
		return index.Job{}, fmt.Errorf("a job of the list %q: %w", pk, err)
	}
	return index.Job{OrganizationID: org, List: parts[2]}, nil
}

// changeJob stores what change makes of the list's job, unless it makes
// nothing of it. It is called again, with a fresher state, when somebody
// else was faster.
func (t *IndexStore) changeJob(ctx context.Context, org value.ID, list string, change func(jobState) (next jobState, changed bool)) error {
	for attempt := range contendedAttempts {
		if attempt > 0 {
			if err := backOff(ctx, attempt); err != nil {
				return wrap("change a job", err)
			}
		}
		it, err := t.get(ctx, jobKey(org, list))
		if err != nil {
			return err
		}
		s, err := decodeJob(it)
		if err != nil {
			return err
		}
		next, changed := change(s)
		if !changed {
			return nil
		}
		done, err := t.replaceJob(ctx, org, list, s.write, next)
		if err != nil || done {
			return err
		}
	}
	return fault.Busy(fmt.Errorf("change the job of %s: others were faster %d times", list, contendedAttempts))
}

// replaceJob writes the next state, or removes the job when that is none, if
// it still is of the write; 0 stands for no job. After a lost answer it does not
// know its own write: a change made twice is a job asked for twice, or one
// that its holder knows by its own number.
func (t *IndexStore) replaceJob(ctx context.Context, org value.ID, list string, write uint64, next jobState) (done bool, err error) {
	condition, values := aws.String("attribute_not_exists(PK)"), item(nil)
	if write != 0 {
		condition, values = aws.String("mark = :write"), item{":write": unsigned(write)}
	}
	if next == (jobState{}) {
		_, err = t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &t.name, Key: jobKey(org, list).item(), ConditionExpression: condition, ExpressionAttributeValues: values,
		})
	} else {
		next.write = newMark()
		_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &t.name, Item: encodeJob(org, list, next), ConditionExpression: condition, ExpressionAttributeValues: values,
		})
	}
	if _, failed := conditionFailed(err); failed {
		return false, nil
	}
	if err != nil {
		return false, wrap("change a job", err)
	}
	return true, nil
}

func encodeJob(org value.ID, list string, s jobState) item {
	it := jobKey(org, list).item()
	it[attrType], it[attrMark], it[attrAsked] = str(typeJob), unsigned(s.write), num(s.asked)
	if s.due != 0 {
		it[attrDue] = num(int64(s.due))
	}
	if s.holder != 0 {
		it[attrHolder], it[attrLease] = unsigned(s.holder), num(int64(s.lease))
	}
	it[attrGSI1PK], it[attrGSI1SK] = str(jobPartition(org, list)), str(jobSort(s.marked, org, list))
	return it
}

// decodeJob returns the zero state for what is absent.
func decodeJob(it item) (s jobState, err error) {
	if it == nil {
		return s, nil
	}
	s = jobState{
		asked: getNumber(it, attrAsked), due: value.Time(getNumber(it, attrDue)),
		holder: getUnsigned(it, attrHolder), lease: value.Time(getNumber(it, attrLease)), write: getUnsigned(it, attrMark),
	}
	sort := getString(it, attrGSI1SK)
	at, _, _ := strings.Cut(sort, "#")
	if s.marked, err = value.ParseTime(at); err != nil {
		return s, fmt.Errorf("decode the job of %s: its mark %q %w", getString(it, attrPK), sort, err)
	}
	return s, nil
}
