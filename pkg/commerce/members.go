package commerce

import (
	"bytes"
	"errors"
	"io"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/go-json-experiment/json/jsontext"
)

// member is one name and raw value of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

type members []member

func (m members) get(name string) (jsontext.Value, bool) {
	for i := range m {
		if m[i].name == name {
			return m[i].value, true
		}
	}
	return nil, false
}

// readable reads a member; zero where it is absent or wrong.
func readable[T any](m members, name string) T {
	var v, zero T
	if raw, given := m.get(name); !given || strictjson.Unmarshal(raw, &v) != nil {
		return zero
	}
	return v
}

// appendMember appends a member whose name needs no escapes.
func appendMember(b []byte, m member) []byte {
	b = append(append(append(b, '"'), m.name...), '"', ':')
	return append(b, m.value...)
}

// splitObject divides a JSON object into its members, in order, repeated
// names included. The values alias the input.
func splitObject(object []byte) (members, error) { return split(object, '{', errNotObject) }

// splitArray divides a JSON array into its elements, members without a name.
func splitArray(array []byte) (members, error) { return split(array, '[', errNotArray) }

func split(text []byte, open jsontext.Kind, errOther error) (members, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != open {
		if _, err := dec.ReadValue(); err != nil {
			return nil, err
		}
		return nil, errOther
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	all := make(members, 0, 48)
	for dec.PeekKind() != open+2 { // ] is two after [, and } after {
		var m member
		if open == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			m.name = name.String()
		}
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := dec.InputOffset() // v is in the decoder's own buffer, which it uses again
		m.value = jsontext.Value(text[end-int64(len(v)) : end : end])
		all = append(all, m)
	}
	return all, atEnd(dec)
}

// atEnd reads the closing bracket, and that nothing follows it.
func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errTrailing
}

var (
	errNotObject = errors.New("must be an object")
	errNotArray  = errors.New("must be an array")
	errTrailing  = errors.New("something follows the JSON value")
)

// explain makes the refusal of a text, called by the noun, that cannot be
// divided.
func explain(noun string, text []byte, err error) error {
	if errors.Is(err, errNotObject) || errors.Is(err, errNotArray) {
		return fault.Field(fault.InBody, "body", fault.DetailType, "%s", err.Error())
	}
	return strictjson.Malformed(noun, text, err)
}
