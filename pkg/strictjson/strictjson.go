// Package strictjson decodes JSON that comes from outside. It refuses unknown
// and duplicate members, trailing data, invalid UTF-8, and control characters
// in text except tab, line feed and carriage return. Its errors name the field.
package strictjson

import (
	"bytes"
	"encoding"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unmarshal decodes data into v, a pointer; a struct takes no null. Every
// error is a [fault.Error] whose details name the field by its path from the
// top: items[2].quantity.
func Unmarshal(data []byte, v any, opts ...json.Options) error {
	if err := checkText(data); err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) && reflect.TypeOf(v).Elem().Kind() == reflect.Struct {
		return fault.Field(fault.InBody, fieldPath(""), fault.DetailType, "must be an object")
	}
	opts = append(opts, json.RejectUnknownMembers(true))
	if err := json.Unmarshal(data, v, opts...); err != nil {
		return explain(err)
	}
	return nil
}

// TrimText makes Unmarshal trim white space around Go strings, keys of maps
// included. It leaves raw JSON and named types alone.
func TrimText() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, s *string) error {
		if dec.PeekKind() != '"' {
			return errors.ErrUnsupported
		}
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		*s = strings.TrimSpace(tok.String())
		return nil
	}))
}

// checkText reads the whole document once: syntax, UTF-8, duplicate names,
// trailing data and control characters.
func checkText(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fault.New(fault.Invalid, fault.CodeMalformedJSON, "the body is empty; send a JSON object")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return explain(err)
		}
		if tok.Kind() == '"' && hasControl(tok.String()) {
			return fault.Field(fault.InBody, fieldPath(dec.StackPointer()), fault.DetailFormat,
				"must not contain control characters")
		}
		if dec.StackDepth() == 0 {
			return atEnd(dec)
		}
	}
}

func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, fault.CodeMalformedJSON, "the body must hold one JSON value and nothing after it")
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0
	})
}

// explain turns the library's errors into faults.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		return explainSemantic(semantic)
	case errors.As(err, &syntactic):
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fault.Field(fault.InBody, fieldPath(syntactic.JSONPointer), fault.DetailDuplicate, "must be given once")
		}
		return malformed(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed(err)
	default:
		return &fault.Error{Kind: fault.Invalid, Code: fault.CodeMalformedJSON, Message: "the body is not valid JSON", Cause: err}
	}
}

func malformed(err error) error {
	message := strings.TrimPrefix(err.Error(), "jsontext: ")
	return &fault.Error{Kind: fault.Invalid, Code: fault.CodeMalformedJSON, Message: "the body is not valid JSON: " + message, Cause: err}
}

func explainSemantic(err *json.SemanticError) error {
	field := fieldPath(err.JSONPointer)
	var inner *fault.Error
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fault.Field(fault.InBody, field, fault.DetailUnknown, "is not a field of this resource")
	case errors.As(err.Err, &inner):
		return inner
	case isText(err.GoType) && err.JSONKind != '"' && err.JSONKind != 0:
		return fault.Field(fault.InBody, field, fault.DetailType, "must be a string")
	case err.Err != nil && isOurs(err.GoType):
		return fault.Field(fault.InBody, field, fault.DetailFormat, "%s", err.Err.Error())
	}
	return fault.Field(fault.InBody, field, fault.DetailType, "must be %s", typeName(err.GoType))
}

// isOurs reports whether the type is of this module: its errors are written
// for callers.
func isOurs(t reflect.Type) bool {
	return t != nil && (strings.HasPrefix(t.PkgPath(), modulePath) || t.Kind() == reflect.Pointer && isOurs(t.Elem()))
}

// isText reports whether the type reads itself from a JSON string.
func isText(t reflect.Type) bool {
	if t == nil {
		return false
	}
	text := reflect.TypeFor[encoding.TextUnmarshaler]()
	return t.Implements(text) || reflect.PointerTo(t).Implements(text)
}

const modulePath = "github.com/commerce-integration/service/"

func typeName(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of at most " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "another type"
	}
}

// fieldPath turns a JSON pointer into the path that messages use.
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}
