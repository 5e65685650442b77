package index

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/base/bounded"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// FieldReader reads the fields that an organization has declared.
type FieldReader interface {
	Fields(ctx context.Context, org value.ID) (commerce.Fields, error)
}

// Fields reads the fields of the organization, if the list can have some.
func (k Key) Fields(ctx context.Context, r FieldReader) (commerce.Fields, error) {
	if k.List.Kind == "" {
		return commerce.Fields{}, nil
	}
	return r.Fields(ctx, k.Org)
}

// BuiltFields is the greatest number of a field that all documents of the list have; 0
// also while the list cannot be read.
func (x Index) BuiltFields(ctx context.Context) (int, error) {
	m, _, err := x.Load(ctx)
	switch {
	case errors.Is(err, ErrNotBuilt), Damaged(err):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return m.Fields, nil
}

// maxCachedFields bounds the organizations of a FieldCache.
const maxCachedFields = 4096

// FieldCache reads the fields of each organization once in an age.
type FieldCache struct {
	reader FieldReader
	age    time.Duration
	clock  func() time.Time
	known  *bounded.Map[value.ID, knownFields]
}

type knownFields struct {
	commerce.Fields
	until time.Time
}

// NewFieldCache returns a cache of what the reader reads.
func NewFieldCache(reader FieldReader, age time.Duration, clock func() time.Time) *FieldCache {
	return &FieldCache{reader, age, clock, bounded.New[value.ID, knownFields](maxCachedFields)}
}

// Fields returns the fields of the organization as they were within the age.
func (c *FieldCache) Fields(ctx context.Context, org value.ID) (commerce.Fields, error) {
	now := c.clock()
	known := c.known.Get(org)
	if now.Before(known.until) {
		return known.Fields, nil
	}
	fields, err := c.reader.Fields(ctx, org)
	if err == nil {
		c.known.Set(org, knownFields{fields, now.Add(c.age)})
	}
	return fields, err
}
