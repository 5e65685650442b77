package webhook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook/pattern"
)

// maxFilters is how many compiled filters are kept. When there are more, they
// are compiled anew.
const maxFilters = 2000

// Filters says which events endpoints get by their delivery settings. It
// compiles each filter once, and is safe for concurrent use.
type Filters struct {
	mu       sync.Mutex
	compiled map[string]*pattern.Pattern
}

// Candidate is an event that an endpoint subscribes to. It is for one goroutine.
type Candidate struct {
	*commerce.WebhookPayload

	document *pattern.Document // nil until a filter needs it
}

// Passes reports whether the endpoint gets the event. The error says that the
// filter or the event cannot be read.
func (f *Filters) Passes(e *Endpoint, c *Candidate) (bool, error) {
	reason, err := f.Refusal(e, c)
	return err == nil && reason == "", err
}

// Refusal says why the endpoint does not get the event; "" when it does.
func (f *Filters) Refusal(e *Endpoint, c *Candidate) (reason string, err error) {
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
	p, err := f.compile(s.Filter)
	if err != nil || p.Match(d) {
		return "", err
	}
	return "filter: " + p.Mismatch(d) + " does not match", nil
}

func (f *Filters) compile(filter []byte) (*pattern.Pattern, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.compiled[string(filter)]; p != nil {
		return p, nil
	}
	p, err := pattern.Compile(filter)
	if err != nil {
		return nil, fmt.Errorf("read a filter: %w", err)
	}
	if f.compiled == nil || len(f.compiled) >= maxFilters {
		f.compiled = map[string]*pattern.Pattern{}
	}
	f.compiled[string(filter)] = p
	return p, nil
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
