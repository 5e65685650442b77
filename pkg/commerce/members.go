package commerce

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/commerce-integration/service/pkg/fault"
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

// splitObject divides a JSON object into its members, in order, repeated
// names included. The values alias the input.
func splitObject(object []byte) (members, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return nil, err
		}
		return nil, errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	split := make(members, 0, 48)
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		if m.value, err = readValue(dec, object); err != nil {
			return nil, err
		}
		split = append(split, m)
	}
	return split, atEnd(dec)
}

// splitArray divides a JSON array into its elements, which alias the input.
func splitArray(array []byte) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(array), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '[' {
		return nil, errNotArray
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var elements []jsontext.Value
	for dec.PeekKind() != ']' {
		v, err := readValue(dec, array)
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	return elements, atEnd(dec)
}

// readValue reads the next value as a part of the input, which outlives the
// decoder's own buffer.
func readValue(dec *jsontext.Decoder, input []byte) (jsontext.Value, error) {
	v, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	return jsontext.Value(input[end-int64(len(v)) : end : end]), nil
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

// explain makes the refusal of a message that cannot be divided.
func explain(err error) error {
	if errors.Is(err, errNotObject) || errors.Is(err, errNotArray) {
		return fault.Field(fault.InBody, "body", fault.DetailType, "%s", err.Error())
	}
	return &fault.Error{
		Kind: fault.Invalid, Code: fault.CodeMalformedJSON, Cause: err,
		Message: "the message is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "),
	}
}
