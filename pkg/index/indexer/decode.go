package indexer

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

// ListChange is the change of one document in one list.
type ListChange struct {
	index.Key
	index.Change
}

// errFields says that the fields of an organization could not be read, so that the record
// has to come again.
var errFields = errors.New("read the fields of an organization")

// Stream decodes records of the table's stream. What it returns is nil for a
// change of another item.
type Stream interface {
	RecordChange(r *events.DynamoDBEventRecord) (*commerce.StoredChange, error)
	Delivery(r *events.DynamoDBEventRecord) (*webhook.Delivery, error)
}

// DecodeFor returns the [Decoder] of the table's stream for the lists. What fields
// reads may be [commerce.FieldAge] old.
func DecodeFor(lists *index.Lists, stream Stream, fields index.FieldReader) Decoder {
	return func(ctx context.Context, r *events.DynamoDBEventRecord) ([]ListChange, error) {
		change, err := stream.RecordChange(r)
		if err != nil {
			return nil, err
		}
		if change != nil {
			key := index.Key{Org: change.New.OrganizationID, List: lists.Records[change.New.Kind]}
			declared, err := key.Fields(ctx, fields)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errFields, err)
			}
			return recordChanges(lists, change, declared)
		}
		d, err := stream.Delivery(r)
		if d == nil || err != nil {
			return nil, err
		}
		return []ListChange{put(d.OrganizationID, lists.Deliveries, webhook.DeliveryDocument(d, 0))}, nil
	}
}

// recordChanges turns a write of a record into changes of its kind's list and
// of the deletions.
func recordChanges(lists *index.Lists, change *commerce.StoredChange, fields commerce.Fields) ([]ListChange, error) {
	list := lists.Records[change.New.Kind]
	before, err := documentBefore(list, change.Old)
	if err != nil {
		return nil, err
	}
	now, err := index.RecordDocument(change.New, fields)
	if err != nil {
		return nil, err
	}
	org, revision := change.New.OrganizationID, int64(change.New.Revision)
	found := Changes(org, list, revision, before, now)
	before, now = index.DeletionDocument(change.Old), index.DeletionDocument(change.New)
	return append(found, Changes(org, lists.Deletions, revision, before, now)...), nil
}

// documentBefore is the document that a change replaced. Only its partition
// matters, so that a list with one partition needs no more than its ID.
func documentBefore(list *index.List, s *commerce.Stored) (*columnar.Document, error) {
	if s == nil || s.Deleted || list.By != index.Whole {
		return index.RecordDocument(s, commerce.Fields{})
	}
	return new(list.Schema.Tombstone(s.ID, 0, 0, 0)), nil
}

// Changes puts the document that a list shows now, if any, into its partition,
// and a tombstone into the partition of the document that it showed before, if
// that is another. The tombstone of a document that moved has a revision
// before the new one, so that it hides the old document and never the new one.
// Revision is that of the change.
func Changes(org value.ID, list *index.List, revision int64, before, now *columnar.Document) []ListChange {
	var found []ListChange
	if now != nil {
		found = append(found, put(org, list, *now))
		revision--
	}
	if before == nil {
		return found
	}
	partition := list.PartitionOf(before)
	if now != nil && partition == found[0].Partition {
		return found
	}
	tombstone := list.Schema.Tombstone(before.ID, before.Sub, revision, 0)
	return append(found, ListChange{index.Key{Org: org, List: list}, index.Change{Partition: partition, Document: tombstone}})
}

func put(org value.ID, list *index.List, d columnar.Document) ListChange {
	return ListChange{index.Key{Org: org, List: list}, index.Change{Partition: list.PartitionOf(&d), Document: d}}
}
