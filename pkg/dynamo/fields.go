package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Fields reads the fields that an organization has declared, strongly consistent.
func (t *Table) Fields(ctx context.Context, org value.ID) (commerce.Fields, error) {
	return read(ctx, t, fieldsKey(org), decodeFields)
}

func decodeFields(it item) (fields commerce.Fields, err error) {
	if it == nil {
		return fields, nil
	}
	return docOf[commerce.Fields](it)
}

// ChangeFields stores what change makes of an organization's fields, which has the next
// version unless they stay, and returns them. Change may be called again, with fresher
// fields; an error of its own ends the attempt.
func (t *Table) ChangeFields(ctx context.Context, org value.ID, change func(commerce.Fields) (commerce.Fields, error)) (next commerce.Fields, err error) {
	err = changing(ctx, "fields", func() (done bool, err error) {
		fields, err := t.Fields(ctx, org)
		if err != nil {
			return false, err
		}
		if next, err = change(fields); err != nil || next.Version == fields.Version {
			return true, err
		}
		it := docItem(fieldsKey(org), typeFields, next)
		it[attrItemVersion] = num(next.Version)
		_, done, err = t.putOnce(ctx, "put the fields of an organization", it, newToken(), ifLast(attrItemVersion, fields.Version))
		return done, err
	})
	return next, err
}
