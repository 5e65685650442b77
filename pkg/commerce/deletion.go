package commerce

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Deletion is a deleted record in the list of deletions.
type Deletion struct {
	ID        value.ID   `json:"id" doc:"The id of the deleted record."`
	Kind      Kind       `json:"kind" doc:"The kind of the deleted record; an open enumeration."`
	DeletedAt value.Time `json:"deletedAt" doc:"When it was deleted."`
}

var deletionSchema = columnar.MustSchema("deletions",
	columnar.Column{Name: "kind", Type: columnar.Keyword},
	columnar.Column{Name: "deletedAt", Type: columnar.Time, Sort: true},
)

// DeletionList is the declaration of the list of deletions. It is shared: do
// not change it.
func DeletionList() *lists.List { return deletionList }

var deletionList = &lists.List{
	Name: "deletions", Schema: deletionSchema, Walk: true, Most: lists.MaxWalk, Sync: "deletedFrom",
	Orders: []lists.Order{lists.By("deletedAt")},
	Filters: []lists.Filter{
		{Name: "kind", Kind: lists.Enum, Column: "kind", Values: Kind("").Values(), Description: "The kind of the deleted record."},
		visibleFilter("deleted", "deletion became visible in this list: deletedAt"),
	},
}

// DeletionDocument returns the columns of a stored record for the list of
// deletions: a document for a tombstone, and a tombstone for a record that
// lives (again). Records of two kinds may share an identifier, so the
// document's Sub is the position of the kind.
func DeletionDocument(s *Stored, visible value.Time) columnar.Document {
	sub := uint8(slices.Index(Kinds(), s.Kind) + 1) //nolint:gosec // there are few kinds
	if !s.Deleted {
		return deletionSchema.Tombstone(s.ID, sub, int64(s.Revision), int64(visible))
	}
	b := deletionSchema.Build(s.ID, sub)
	b.Keyword(deletionSchema.Col("kind"), string(s.Kind))
	b.Time(deletionSchema.Col("deletedAt"), int64(s.Revision))
	return b.Document(int64(s.Revision), int64(visible))
}

// DeletionOf makes the deletion of a hit in the list of deletions. The revision
// of a tombstone is the time of the deletion. ok is false when the hit's Sub
// names no kind.
func DeletionOf(hit columnar.Hit) (_ Deletion, ok bool) {
	kinds := Kinds()
	if hit.Sub < 1 || int(hit.Sub) > len(kinds) {
		return Deletion{}, false
	}
	return Deletion{ID: hit.ID, Kind: kinds[hit.Sub-1], DeletedAt: value.Time(hit.Revision)}, true
}
