// Package strictjson decodes JSON that comes from outside. It refuses unknown
// and duplicate members, trailing data, invalid UTF-8, numbers that overflow a
// double, and control characters in text except tab, line feed and carriage
// return. Its errors name the field.
package strictjson

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unmarshal decodes data into v, a pointer; a struct takes no null. Every
// error is a [fault.Error] whose details name each field that is wrong by its
// path from the top: items[2].quantity.
func Unmarshal(data []byte, v any, opts ...json.Options) error {
	details, err := Collect(data, v, opts...)
	if err != nil {
		return err
	}
	return details.Err()
}

// Collect decodes as [Unmarshal] does, but goes on past a member of the
// document that is wrong: details names at most [fault.MaxDetails] of them, and v has the
// others. The error is that of a document that cannot be taken apart.
func Collect(data []byte, v any, opts ...json.Options) (fault.Details, error) {
	details, err := checkText(data)
	if err != nil {
		return nil, err
	}
	opts = append(opts, json.RejectUnknownMembers(true))
	if reflect.TypeOf(v).Elem().Kind() != reflect.Struct {
		return details, explain(json.Unmarshal(data, v, opts...))
	}
	if jsontext.Value(data).Kind() != '{' {
		return nil, fault.Field(fault.InBody, fieldPath(""), fault.DetailType, "must be an object")
	}
	whole := explain(json.Unmarshal(data, v, opts...))
	if whole == nil {
		return details, nil
	}
	if details, err = collectMembers(data, v, details, opts); len(details) == 0 && err == nil {
		err = whole
	}
	return details, err
}

// collectMembers decodes each member of an object as if it were the only one,
// and adds the fault.
func collectMembers(data []byte, v any, details fault.Details, opts []json.Options) (fault.Details, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	if _, err := dec.ReadToken(); err != nil {
		return nil, explain(err)
	}
	for dec.PeekKind() != '}' && len(details) < fault.MaxDetails {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, explain(err)
		}
		member := append(append([]byte{'{'}, name...), ':')
		content, err := dec.ReadValue()
		if err != nil {
			return nil, explain(err)
		}
		member = append(append(member, content...), '}')
		if f, is := fault.As(explain(json.Unmarshal(member, v, opts...))); is {
			details = append(details, f.Details...)
		}
	}
	return details, nil
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

// checkText reads the whole document once: syntax, UTF-8, duplicate names and
// trailing data. details names the texts that hold control characters, and the
// numbers that overflow a double.
func checkText(data []byte) (details fault.Details, _ error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fault.New(fault.Invalid, fault.CodeMalformedJSON, "the body is empty; send a JSON object")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, explainSyntax(data, err)
		}
		if len(details) < fault.MaxDetails {
			checkToken(tok, dec, &details)
		}
		if dec.StackDepth() == 0 {
			return details, atEnd(dec)
		}
	}
}

// checkToken checks the text or number that was just read. Most clients read a
// number into a double, and one that overflows as infinity, which is not JSON.
func checkToken(tok jsontext.Token, dec *jsontext.Decoder, details *fault.Details) {
	switch tok.Kind() {
	case '"':
		if position, r := control(tok.String()); position > 0 {
			details.Add(fault.InBody, fieldPath(dec.StackPointer()), fault.DetailFormat,
				"must not contain control characters: character %d%s is %U", position, ofName(dec), r)
		}
	case '0':
		if _, err := strconv.ParseFloat(tok.String(), 64); err != nil {
			details.Add(fault.InBody, fieldPath(dec.StackPointer()), fault.DetailOutOfRange,
				"must lie between -1.7976931348623157e308 and 1.7976931348623157e308, as a double can hold")
		}
	}
}

// ofName says that the text that was just read is the name of a member.
func ofName(dec *jsontext.Decoder) string {
	if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 {
		return " of the name"
	}
	return ""
}

func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, fault.CodeMalformedJSON, "the body must hold one JSON value and nothing after it")
	}
	return nil
}

// control finds the first control character (C0 but tab, line feed and carriage
// return; delete; C1) and its position in code points, from 1; 0 without one.
func control(s string) (position int, _ rune) {
	at := strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
	})
	if at < 0 {
		return 0, 0
	}
	r, _ := utf8.DecodeRuneInString(s[at:])
	return utf8.RuneCountInString(s[:at]) + 1, r
}

// explain makes the fault of an error in decoding JSON whose syntax was checked.
func explain(err error) error {
	var semantic *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &semantic):
		return explainSemantic(semantic)
	}
	return &fault.Error{Kind: fault.Invalid, Code: fault.CodeMalformedJSON, Message: "the body is not valid JSON", Cause: err}
}

// explainSyntax makes the fault of an error in reading the document.
func explainSyntax(data []byte, err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic) {
		return fault.Field(fault.InBody, fieldPath(syntactic.JSONPointer), fault.DetailDuplicate, "must be given once")
	}
	return Malformed("body", data, err)
}

// Malformed makes the fault of a document, called by the noun, whose syntax is
// wrong. A control character that stands in a text unescaped is told by its code
// point and its position in code points, from 1.
func Malformed(noun string, data []byte, err error) error {
	reason := strings.TrimPrefix(err.Error(), "jsontext: ")
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && syntactic.ByteOffset < int64(len(data)) && data[syntactic.ByteOffset] < 0x20 {
		before := data[:syntactic.ByteOffset]
		reason = fmt.Sprintf("%s holds a control character unescaped: character %d of the %s is %U",
			fieldPath(syntactic.JSONPointer), utf8.RuneCount(before)+1, noun, data[len(before)])
	}
	return fault.New(fault.Invalid, fault.CodeMalformedJSON, "the %s is not valid JSON: %s", noun, reason)
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
