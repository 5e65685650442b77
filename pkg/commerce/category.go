package commerce

import (
	"strings"
	"unicode"

	"github.com/commerce-integration/service/pkg/fold"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Category is the GET shape of a category. One without a site is global.
type Category struct {
	ID             value.ID   `json:"id"`
	OrganizationID value.ID   `json:"organizationId"`
	SiteID         *value.ID  `json:"siteId"`
	Name           string     `json:"name"`
	Description    *string    `json:"description"`
	Slug           *string    `json:"slug"`
	ParentID       *value.ID  `json:"parentId"`
	IsActive       bool       `json:"isActive"`
	Image          *string    `json:"image"`
	Order          int64      `json:"order"`
	CreatedAt      value.Time `json:"createdAt"`
	UpdatedAt      value.Time `json:"updatedAt"`
}

// Kind implements [Record].
func (*Category) Kind() Kind { return KindCategory }

// Head implements [Record].
func (c *Category) Head() Head {
	return Head{
		ID: c.ID, OrganizationID: c.OrganizationID, SiteID: c.SiteID,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// categoryInput is a category as a back office sends it.
type categoryInput struct {
	Category

	IsActive  *bool          `json:"isActive"`
	CreatedAt *value.Time    `json:"createdAt"`
	UpdatedAt jsontext.Value `json:"updatedAt"` // ignored
}

func (in *categoryInput) complete(d *draft) Record {
	c := &in.Category
	d.adopt(c.ID, &c.OrganizationID)
	d.require("name", c.Name != "")
	if c.Slug == nil {
		c.Slug = slugOf(c.Name)
	}
	c.IsActive = orValue(in.IsActive, true)
	c.CreatedAt = orValue(in.CreatedAt, d.createdAt)
	c.UpdatedAt = d.updatedAt
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
