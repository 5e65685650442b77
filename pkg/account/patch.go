package account

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Patch is a field of an update: absent (stays as it is), null (is cleared)
// or a value. Its zero value is absent.
type Patch[T any] struct {
	Given bool // the field was in the body
	Null  bool // as null
	Value T
}

// Pointer returns the value; nil when the field is absent or null.
func (p *Patch[T]) Pointer() *T {
	if !p.Given || p.Null {
		return nil
	}
	return &p.Value
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. It is called only for
// a field that is in the body.
func (p *Patch[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		*p = Patch[T]{Given: true, Null: true}
		return dec.SkipValue()
	}
	var v T
	if err := json.UnmarshalDecode(dec, &v); err != nil {
		return err
	}
	*p = Patch[T]{Given: true, Value: v}
	return nil
}
