package commerce

import (
	"bytes"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a free-form object (attributes, metadata).
const (
	maxFreeFormBytes  = 32 << 10 // compact
	maxFreeFormLevels = 8        // the object itself is the first
)

// freeForm checks a free-form object and returns the form that is stored:
// compact, names sorted, text escaped only where it must be, numbers as they
// were written (a number here may be finer than a binary float holds; the decoder
// refuses one that overflows it). Absent is {}.
func (d *draft) freeForm(field string, v jsontext.Value) jsontext.Value {
	switch {
	case len(v) == 0 || v.Kind() == 'n':
		return jsontext.Value("{}")
	case v.Kind() != '{':
		d.refuse(field, fault.DetailType, "must be an object")
		return nil
	}
	canonical := v.Clone()
	if err := canonical.Format(jsontext.ReorderRawObjects(true)); err != nil {
		d.refuse(field, fault.DetailFormat, "is not valid JSON")
		return nil
	}
	if len(canonical) > maxFreeFormBytes {
		d.refuse(field, fault.DetailOutOfRange, "must have at most %d bytes as compact JSON", maxFreeFormBytes)
	}
	if levels(canonical) > maxFreeFormLevels {
		d.refuse(field, fault.DetailOutOfRange, "must be at most %d levels deep", maxFreeFormLevels)
	}
	return canonical
}

// levels counts how deep valid JSON nests objects and arrays.
func levels(v jsontext.Value) (deepest int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, dec.StackDepth())
	}
}
