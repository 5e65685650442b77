package indexing

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Lists are all lists of an organization.
type Lists struct {
	Records   map[commerce.Kind]*List
	Deletions *List
	Events    *List // the webhook history
}

// readPage is how many items a rebuild reads at a time.
const readPage = 1000

// NewLists declares the lists over the table that they are rebuilt from.
func NewLists(table *dynamo.Table) *Lists {
	l := &Lists{Records: map[commerce.Kind]*List{}, Deletions: deletionList(table), Events: eventList(table)}
	for _, kind := range commerce.Kinds() {
		l.Records[kind] = recordList(table, kind)
	}
	return l
}

// All returns every list, those of records first.
func (l *Lists) All() []*List {
	var all []*List
	for _, kind := range commerce.Kinds() {
		all = append(all, l.Records[kind])
	}
	return append(all, l.Deletions, l.Events)
}

// Named returns the list of the name, nil when there is none.
func (l *Lists) Named(name string) *List {
	for _, list := range l.All() {
		if list.Name == name {
			return list
		}
	}
	return nil
}

func recordList(table *dynamo.Table, kind commerce.Kind) *List {
	list := &List{Name: kind.Plural(), Schema: commerce.ListOf(kind).Schema, Shards: dynamo.Shards}
	if kind == commerce.KindOrder || kind == commerce.KindInvoice {
		list.By, list.On = Monthly, list.Schema.Col("createdAt")
	}
	list.Read = func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
		stored, next, err := table.RecordsPage(ctx, org, kind, shard, after, readPage)
		if err != nil {
			return nil, "", err
		}
		documents := make([]columnar.Document, 0, len(stored))
		for _, s := range stored {
			if s.Deleted {
				continue
			}
			document, err := commerce.Document(s, 0)
			if err != nil {
				return nil, "", err
			}
			documents = append(documents, document)
		}
		return documents, next, nil
	}
	return list
}

func deletionList(table *dynamo.Table) *List {
	schema, kinds := commerce.DeletionList().Schema, commerce.Kinds()
	return &List{
		Name: commerce.DeletionList().Name, Schema: schema, By: Monthly, On: schema.Col("deletedAt"), Keep: commerce.TombstoneAge,
		Shards: len(kinds) * dynamo.Shards,
		Read: func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
			stored, next, err := table.RecordsPage(ctx, org, kinds[shard/dynamo.Shards], shard%dynamo.Shards, after, readPage)
			if err != nil {
				return nil, "", err
			}
			var documents []columnar.Document
			for _, s := range stored {
				if s.Deleted {
					documents = append(documents, commerce.DeletionDocument(s, 0))
				}
			}
			return documents, next, nil
		},
	}
}

// eventListName names the list of the webhook history in the table.
const eventListName = "webhook-events"

func eventList(table *dynamo.Table) *List {
	schema := webhook.DeliveryList().Schema
	return &List{
		Name: eventListName, Schema: schema, By: Daily, On: schema.Col("createdAt"), Keep: webhook.Retention, Shards: dynamo.Shards,
		Read: func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
			rows, next, err := table.DeliveriesPage(ctx, org, shard, after, readPage)
			if err != nil {
				return nil, "", err
			}
			documents := make([]columnar.Document, len(rows))
			for i, r := range rows {
				documents[i] = webhook.DeliveryDocument(r, 0)
			}
			return documents, next, nil
		},
	}
}

// Decode is the [Decoder] of the table's stream.
func (l *Lists) Decode(r *events.DynamoDBEventRecord) ([]ListChange, error) {
	switch dynamo.StreamType(r) {
	case dynamo.StreamRecord:
		return l.decodeRecord(r)
	case dynamo.StreamEvent:
		row, err := dynamo.DecodeDeliveryChange(r)
		if err != nil {
			return nil, err
		}
		document := webhook.DeliveryDocument(row, 0)
		return []ListChange{{row.OrganizationID, l.Events, l.Events.partOf(&document), document}}, nil
	default:
		return nil, nil
	}
}

// decodeRecord turns a write of a record into changes of its kind's list and
// of the deletions.
func (l *Lists) decodeRecord(r *events.DynamoDBEventRecord) ([]ListChange, error) {
	change, err := dynamo.DecodeRecordChange(r)
	if err != nil {
		return nil, err
	}
	list := l.Records[change.New.Kind]
	was, err := list.documentBefore(change.Old)
	if err != nil {
		return nil, err
	}
	is, err := recordDocument(change.New)
	if err != nil {
		return nil, err
	}
	org, revision := change.OrganizationID, int64(change.New.Revision)
	found := Changes(org, list, revision, was, is)
	return append(found, Changes(org, l.Deletions, revision, deletionDocument(change.Old), deletionDocument(change.New))...), nil
}

// recordDocument is what the list of a kind shows of a record; nil when that
// is nothing.
func recordDocument(s *commerce.Stored) (*columnar.Document, error) {
	if s == nil || s.Deleted {
		return nil, nil
	}
	document, err := commerce.Document(s, 0)
	return &document, err
}

// documentBefore is recordDocument of what a change replaced, of which only the
// part matters.
func (l *List) documentBefore(s *commerce.Stored) (*columnar.Document, error) {
	if s == nil || s.Deleted || l.By != Whole {
		return recordDocument(s)
	}
	document := l.Schema.Tombstone(s.ID, 0, 0, 0)
	return &document, nil
}

// deletionDocument is what the list of deletions shows of a record; nil when
// that is nothing.
func deletionDocument(s *commerce.Stored) *columnar.Document {
	if s == nil || !s.Deleted {
		return nil
	}
	document := commerce.DeletionDocument(s, 0)
	return &document
}

// Changes gives the document that a list shows now, nil when it shows none any
// more, to its part, and a tombstone to the part of the document that it showed
// before, when that is another. The tombstone of what moved stands one revision
// before what is new, so that it ends the one and never the other. Revision is
// that of the change.
func Changes(org value.ID, list *List, revision int64, was, is *columnar.Document) []ListChange {
	var found []ListChange
	if is != nil {
		found = append(found, ListChange{org, list, list.partOf(is), *is})
		revision--
	}
	if was == nil {
		return found
	}
	part := list.partOf(was)
	if is != nil && part == found[0].Part {
		return found
	}
	return append(found, ListChange{org, list, part, list.Schema.Tombstone(was.ID, was.Sub, revision, 0)})
}
