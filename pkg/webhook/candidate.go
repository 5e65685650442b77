package webhook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook/pattern"
)

// Candidate is an event that an endpoint subscribes to. It is for one goroutine.
type Candidate struct {
	*commerce.WebhookPayload

	document *pattern.Document // nil until a filter needs it
}

// Refusal says why the endpoint does not get the event by its delivery settings; ""
// when it does. The error says that the filter or the event cannot be read.
func (c *Candidate) Refusal(e *Endpoint) (reason string, err error) {
	s := &e.Delivery
	if s.Filter == nil && s.Changed == nil || commerce.RecordKind(c.Type) == "" {
		return "", nil
	}
	d, err := c.parse()
	if err != nil {
		return "", err
	}
	if s.Changed != nil && c.Data.PreviousAttributes.Kind() == '{' &&
		!slices.ContainsFunc(s.Changed, func(name string) bool { return d.Has("previousAttributes", name) }) {
		return "changed: none of " + strings.Join(s.Changed, ", ") + " has changed", nil
	}
	if s.Filter == nil {
		return "", nil
	}
	p, err := pattern.Compile(s.Filter)
	if err != nil {
		return "", fmt.Errorf("read a filter: %w", err)
	}
	if at := p.Mismatch(d); at != "" {
		return "filter: " + at + " does not match", nil
	}
	return "", nil
}

// parse reads what filters are about: the object, previousAttributes and siteId.
func (c *Candidate) parse() (_ *pattern.Document, err error) {
	if c.document != nil {
		return c.document, nil
	}
	site := "null"
	if c.SiteID != nil {
		site = strconv.Quote(c.SiteID.String())
	}
	c.document, err = pattern.ParseDocument(slices.Concat(
		[]byte(`{"object":`), c.Data.Object, []byte(`,"previousAttributes":`), c.Data.PreviousAttributes, []byte(`,"siteId":`+site+`}`)))
	if err != nil {
		return nil, fmt.Errorf("read event %s for its filters: %w", c.ID, err)
	}
	return c.document, nil
}
