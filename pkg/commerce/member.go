package commerce

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
)

// MemberType is the JSON type of a member of a record.
type MemberType string

// The types of members. Arrays do not count: a list of texts is a text.
const (
	MemberText    MemberType = "a text"
	MemberNumber  MemberType = "a number"
	MemberBool    MemberType = "true or false"
	MemberObject  MemberType = "an object"
	MemberUnknown MemberType = "of any type" // below attributes and metadata
)

// Member is the type of what the path of names leads to in the kind's GET
// shape, through lists; "" when the member does not exist.
func Member(kind Kind, path ...string) MemberType {
	t := reflect.TypeOf(kind.known().record())
	for i := 0; ; i++ {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != reflect.TypeFor[jsontext.Value]() {
			t = t.Elem()
		}
		switch {
		case t == reflect.TypeFor[jsontext.Value]() && i < len(path):
			return MemberUnknown
		case i == len(path):
			return memberType(t)
		case t.Kind() != reflect.Struct:
			return ""
		}
		at := shape{t}.position(path[i])
		if at < 0 {
			return ""
		}
		t = t.Field(at).Type
	}
}

func memberType(t reflect.Type) MemberType {
	switch {
	case t == reflect.TypeFor[value.Amount]():
		return MemberNumber
	case t == reflect.TypeFor[value.ID](), t == reflect.TypeFor[value.Time](), t.Kind() == reflect.String:
		return MemberText
	case t.Kind() == reflect.Bool:
		return MemberBool
	case reflect.Zero(t).CanInt():
		return MemberNumber
	}
	return MemberObject
}

// RecordKind is the kind of the record that is the object of an event of the
// type; "" when its object is another, such as a webhook endpoint.
func RecordKind(eventType string) Kind {
	for d, e := range recordEvents() {
		if e.name == eventType {
			return d.kind
		}
	}
	return ""
}

// SelectFields returns the payload of a record's event with only these fields
// of its object, and its id, in the object and in previousAttributes. The
// members stay in their order and their values as they are, so that the same
// payload and fields give the same bytes under every release.
func SelectFields(payload []byte, fields []string) ([]byte, error) {
	only := func(object jsontext.Value) (jsontext.Value, error) {
		if object.Kind() == 'n' {
			return object, nil // previousAttributes of a creation or a deletion
		}
		return editMembers(object, func(m *member) (kept bool, err error) {
			return m.name == "id" || slices.Contains(fields, m.name), nil
		})
	}
	selected, err := editMembers(payload, func(m *member) (_ bool, err error) {
		if m.name == "data" {
			m.value, err = editMembers(m.value, func(m *member) (_ bool, err error) {
				m.value, err = only(m.value)
				return true, err
			})
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("select fields of a payload of %d bytes: %w", len(payload), err)
	}
	return selected, nil
}

// editMembers writes an object whose names need no escapes again, each member
// as edit leaves it, without those that it does not keep.
func editMembers(object []byte, edit func(m *member) (kept bool, err error)) (jsontext.Value, error) {
	all, err := splitObject(object)
	if err != nil {
		return nil, err
	}
	edited := append(make(jsontext.Value, 0, len(object)), '{')
	for i := range all {
		kept, err := edit(&all[i])
		if err != nil {
			return nil, err
		}
		if !kept {
			continue
		}
		if len(edited) > 1 {
			edited = append(edited, ',')
		}
		edited = appendMember(edited, all[i])
	}
	return append(edited, '}'), nil
}
