package commerce

import (
	"strings"
	"unicode"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/go-json-experiment/json/jsontext"
)

var categoryKind = &definition{
	kind: KindCategory, plural: "categories", text: "The tree of product categories.", noSite: noSiteGlobal,
	columns: []string{columnSite, "parentId", "isActive", "name", "slug", "order", "createdAt", "updatedAt"},
	search:  []string{"name", "slug"},
	orders:  []lists.Order{lists.ByText("order"), lists.ByText("name"), lists.By("createdAt"), lists.By("updatedAt")},
	filters: []lists.Filter{
		siteFilter("The site of the category."),
		{Name: "isActive", Description: "Whether the category is active."},
		{
			Name: "parentId", Kind: lists.ID, Column: "parentId", Null: "root",
			Description: "The category above, a UUID, or root for the categories that have none.",
		},
		{
			Name: filterGlobal, Kind: lists.Bool,
			Description: "Whether categories of no site are listed; false under a site filter and true without, unless given.",
		},
		{Name: "slug", Description: "The category's slug."},
	},
	events: lifecycle(KindCategory, "A category", "A field of a category changed.", `{"name": "Cups, mugs & glasses", "slug": "cups-mugs"}`),
	sample: `{
		"id": "0192f0c2-3c5e-7d22-9b5d-62a1b3c4d5e6", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"name": "Cups & mugs", "order": 3}`,
}

// Category is the GET shape of a category. One without a site is global.
type Category struct {
	ID             value.ID   `json:"id"`
	OrganizationID value.ID   `json:"organizationId"`
	SiteID         *value.ID  `json:"siteId" doc:"The site of the category. null for a global category, which every site shows."`
	Name           string     `json:"name" doc:"The name shown in shops."`
	Description    *string    `json:"description" doc:"Free text. null if none."`
	Slug           *string    `json:"slug" doc:"The part of a URL that names it; derived from the name if the sender gives none. null if the name has no letter or digit."`
	ParentID       *value.ID  `json:"parentId" doc:"The parent category. null at the top."`
	IsActive       bool       `json:"isActive" doc:"Whether shops show it."`
	Image          *string    `json:"image" doc:"The URL of its image. null if none."`
	Order          int64      `json:"order" doc:"The position among its siblings, in ascending order."`
	CreatedAt      value.Time `json:"createdAt"`
	UpdatedAt      value.Time `json:"updatedAt"`
}

// categoryInput is a category as a back office sends it.
type categoryInput struct {
	Category

	IsActive  *bool          `json:"isActive"`
	CreatedAt *value.Time    `json:"createdAt"`
	UpdatedAt jsontext.Value `json:"updatedAt"` // ignored
}

func (in *categoryInput) complete(d *draft) any {
	c := &in.Category
	d.adopt(c.ID, &c.OrganizationID)
	d.require("name", c.Name != "")
	if c.Slug == nil {
		c.Slug = slugOf(c.Name)
	}
	c.IsActive = value.Or(in.IsActive, true)
	c.CreatedAt, c.UpdatedAt = d.times(in.CreatedAt)
	return c
}

// slugOf joins the folded letters and digits of a name by single hyphens. A
// name without any gives no slug.
func slugOf(name string) *string {
	words := strings.FieldsFunc(fold.String(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	if len(words) == 0 {
		return nil
	}
	slug := strings.Join(words, "-")
	return &slug
}

// maxDescendants bounds a tree that is followed: deeper or wider ones are
// followed as far as that.
const maxDescendants = 10_000

// descendants returns a category and those below it. A cycle ends where it
// closes.
func descendants(categories Finder, root value.ID) ([]value.ID, error) {
	parent := categoryKind.list.Schema.Col("parentId")
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
