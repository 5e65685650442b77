package commerce

import (
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	// filterSite is a filter whose meaning needs more than the query string.
	filterSite = "siteId"

	maxIDs = 100
)

// ListOf returns the declaration of a kind's list. It is shared: do not
// change it. It panics on an unknown kind.
func ListOf(kind Kind) *lists.List { return kind.known().list }

// siteFilter declares the filter that [SiteScope] applies.
func siteFilter(text string) lists.Filter {
	return lists.Filter{Name: filterSite, Kind: lists.ID, Description: text + " The same as X-Site-Id."}
}

// commonFilters are the filters that every kind's list has.
func commonFilters() []lists.Filter {
	return []lists.Filter{
		{Name: "ids", Kind: lists.IDs, Max: maxIDs, Description: "The records with these ids, at most 100."},
		{Name: "created", Kind: lists.Range, Column: "createdAt", Description: "When the record was created."},
		visibleFilter("updated", "last change became visible in lists: updatedAt"),
	}
}

// visibleFilter declares the filter by the time at which a change became
// visible, which lets a client follow a list.
func visibleFilter(name, what string) lists.Filter {
	return lists.Filter{Name: name, Kind: lists.Visible, Description: "When the " + what + " or, at most, seconds later. " +
		"Asking again from the X-Sync-From of the last first page misses nothing."}
}

// Finder answers queries of a list.
type Finder func(columnar.Query) (columnar.Result, error)

// where is a query of a kind's list while its filters are put together.
type where struct {
	*lists.Query
	schema     *columnar.Schema
	categories Finder
	now        value.Time
	filters    []columnar.Filter
}

func (w *where) add(f columnar.Filter) { w.filters = append(w.filters, f) }

// IndexQuery turns a parsed query of a kind's list into the query of its
// columns, limited to the records that the reader may see at the time. fields are those
// that the organization has declared, of a query that uses some.
// categories answers queries of the list of categories; only a query for the
// products of a category and those below it asks it, and its error is
// returned as it is.
func IndexQuery(kind Kind, q *lists.Query, scope SiteScope, categories Finder, now value.Time, fields Fields) (columnar.Query, error) {
	d := kind.known()
	w := &where{Query: q, schema: d.list.Schema, categories: categories, now: now}
	w.add(scope.filter(d, q))
	if d.where != nil {
		if err := d.where(w); err != nil {
			return columnar.Query{}, err
		}
	}
	newest, err := fields.filter(w, kind)
	if err != nil {
		return columnar.Query{}, err
	}
	indexed := q.Index(w.filters...)
	indexed.Fields = newest
	return indexed, nil
}
