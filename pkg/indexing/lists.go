package indexing

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Records reads all records of a kind, tombstones included.
type Records interface {
	AllRecords(ctx context.Context, org value.ID, kind commerce.Kind, each func(*commerce.Stored) error) error
}

// RecordLists returns the lists of the five kinds.
func RecordLists(records Records) map[commerce.Kind]*List {
	lists := map[commerce.Kind]*List{}
	for _, kind := range commerce.Kinds() {
		lists[kind] = &List{
			Name: kind.Plural(), Schema: commerce.ListOf(kind).Schema,
			Load: func(ctx context.Context, org value.ID, each func(index.Document)) error {
				return records.AllRecords(ctx, org, kind, func(s *commerce.Stored) error {
					document, err := commerce.Document(s, 0)
					if err == nil {
						each(document)
					}
					return err
				})
			},
		}
	}
	return lists
}

// DeletionList returns the list of deletions.
func DeletionList(records Records) *List {
	return &List{
		Name: commerce.DeletionList().Name, Schema: commerce.DeletionList().Schema,
		Load: func(ctx context.Context, org value.ID, each func(index.Document)) error {
			for _, kind := range commerce.Kinds() {
				err := records.AllRecords(ctx, org, kind, func(s *commerce.Stored) error {
					if s.Deleted {
						each(commerce.DeletionDocument(s, 0))
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// eventList names the list of the webhook history in the change log.
const eventList = "webhook-events"

// Rows reads all rows of the webhook history.
type Rows interface {
	AllRows(ctx context.Context, org value.ID, each func(*webhook.Row) error) error
}

// EventList returns the list of the webhook history.
func EventList(rows Rows) *List {
	return &List{
		Name: eventList, Schema: webhook.EventList().Schema,
		Load: func(ctx context.Context, org value.ID, each func(index.Document)) error {
			return rows.AllRows(ctx, org, func(r *webhook.Row) error {
				each(webhook.EventDocument(r, 0))
				return nil
			})
		},
	}
}

// decodeRecord turns a stream record of a record into its documents: of its
// kind's list, and of the deletions where it enters or leaves them.
func decodeRecord(r *events.DynamoDBEventRecord) ([]Entry, error) {
	change, err := dynamo.DecodeRecordChange(r)
	if err != nil {
		return nil, err
	}
	document, err := commerce.Document(change.New, 0)
	if err != nil {
		return nil, err
	}
	found := []Entry{{OrganizationID: change.OrganizationID, List: change.New.Kind.Plural(), Document: document}}
	wasDeleted := change.Old != nil && change.Old.Deleted
	if change.New.Deleted || wasDeleted {
		found = append(found, Entry{
			OrganizationID: change.OrganizationID, List: commerce.DeletionList().Name,
			Document: commerce.DeletionDocument(change.New, 0),
		})
	}
	return found, nil
}

// Decode is the [Decoder] of the table's stream.
func Decode(r *events.DynamoDBEventRecord) ([]Entry, error) {
	switch dynamo.StreamType(r) {
	case dynamo.StreamRecord:
		return decodeRecord(r)
	case dynamo.StreamEvent:
		row, err := dynamo.DecodeRowChange(r)
		if err != nil {
			return nil, err
		}
		return []Entry{{OrganizationID: row.OrganizationID, List: eventList, Document: webhook.EventDocument(row, 0)}}, nil
	default:
		return nil, nil
	}
}
