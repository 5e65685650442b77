package commerce

import (
	"math"
	"slices"

	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Reach is which sites a reader asks for and may see.
type Reach struct {
	Site  *value.ID  // asked for by siteId or X-Site-Id; it must be one that the credential covers
	Sites []value.ID // that the credential covers; nil: every site
}

// sites are those whose records are shown; every is true when none is asked
// for and the credential covers all.
func (r Reach) sites() (ids []value.ID, every bool) {
	if r.Site != nil {
		return []value.ID{*r.Site}, false
	}
	return r.Sites, r.Sites == nil
}

// Shows reports whether a live record may be seen by its identifier: a
// product of one of the sites or of none, a category of one of them or a
// global one, another record of one of them.
func (r Reach) Shows(s *Stored) (bool, error) {
	sites, every := r.sites()
	if every {
		return true, nil
	}
	record, err := s.Record()
	if err != nil {
		return false, err
	}
	own := record.Head().SiteID
	switch {
	case s.Kind == KindProduct:
		return s.SiteIDs == nil || slices.ContainsFunc(s.SiteIDs, func(id value.ID) bool { return slices.Contains(sites, id) }), nil
	case own == nil:
		return s.Kind == KindCategory, nil
	}
	return slices.Contains(sites, *own), nil
}

// filter is the index filter of what the reader sees in a kind's list.
func (r Reach) filter(kind Kind, q *lists.Query) columnar.Filter {
	schema := ListOf(kind).Schema
	sites, every := r.sites()
	switch kind {
	case KindProduct:
		col := schema.Col("siteIds")
		if every {
			return columnar.All()
		}
		return columnar.Any(columnar.In(col, lists.Keys(sites)...), columnar.Null(col))
	case KindCategory:
		col := schema.Col("siteId")
		switch globals := q.Bool(filterGlobal, r.Site == nil); {
		case every && globals:
			return columnar.All()
		case every:
			return columnar.Not(columnar.Null(col))
		case globals:
			return columnar.Any(columnar.In(col, lists.Keys(sites)...), columnar.Null(col))
		}
		return columnar.In(col, lists.Keys(sites)...)
	}
	if every {
		return columnar.All()
	}
	return columnar.In(schema.Col("siteId"), lists.Keys(sites)...)
}

// Descendants returns the categories below a category and itself, given the
// children of any number of categories. A cycle ends where it closes.
type Descendants func(category value.ID) ([]value.ID, error)

// IndexQuery turns a parsed query of a kind's list into the query of its
// index: what was asked, within what the reader may see, at a time.
// descendants is called only for products under includeDescendants; its
// error is returned as it is.
func IndexQuery(kind Kind, q *lists.Query, reach Reach, descendants Descendants, now value.Time) (columnar.Query, error) {
	schema := ListOf(kind).Schema
	filters := []columnar.Filter{reach.filter(kind, q)}
	if category, ok := q.ID(filterCategory); ok {
		categories := []value.ID{category}
		if q.Bool(filterDescendants, false) {
			var err error
			if categories, err = descendants(category); err != nil {
				return columnar.Query{}, err
			}
		}
		filters = append(filters, columnar.In(schema.Col("categoryId"), lists.Keys(categories)...))
	}
	if kind == KindInvoice && q.Has(filterOverdue) {
		filter := overdueFilter(schema, now)
		if !q.Bool(filterOverdue, false) {
			filter = columnar.Not(filter)
		}
		filters = append(filters, filter)
	}
	if (kind == KindProduct || kind == KindCategory) && q.Has(filterExternalRef) {
		filters = append(filters, columnar.Any()) // neither has one
	}
	return q.Index(filters...), nil
}

// overdueFilter is [Invoice.OverdueAt] of the index.
func overdueFilter(schema *columnar.Schema, now value.Time) columnar.Filter {
	return columnar.All(
		columnar.In(schema.Col("type"), string(InvoiceRegular)),
		columnar.In(schema.Col("status"), string(InvoiceIssued), string(InvoicePartiallyPaid)),
		columnar.Within(schema.Col("dueAt"), math.MinInt64, int64(now)),
		columnar.Between(schema.Col("amountDue"), 1, math.MaxInt64),
	)
}

// maxDescendants bounds a tree that is followed: deeper or wider ones are
// followed as far as that.
const maxDescendants = 10_000

// Finder answers queries of an index.
type Finder func(columnar.Query) (columnar.Result, error)

// DescendantsIn follows the tree of categories in the categories' index.
func DescendantsIn(categories Finder) Descendants {
	parent := categorySchema.Col("parentId")
	return func(root value.ID) ([]value.ID, error) {
		found := []value.ID{root}
		seen := map[value.ID]bool{root: true}
		for level := found; len(level) > 0 && len(found) < maxDescendants; {
			result, err := categories(columnar.Query{
				Filter: columnar.In(parent, lists.Keys(level)...), OrderBy: columnar.ByID, Limit: maxDescendants,
			})
			if err != nil {
				return nil, err
			}
			start := len(found)
			for _, hit := range result.Hits {
				if id := value.ID(hit.ID); !seen[id] {
					seen[id] = true
					found = append(found, id)
				}
			}
			level = found[start:]
		}
		return found, nil
	}
}
