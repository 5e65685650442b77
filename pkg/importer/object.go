package importer

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object makes the JSON object of names and values that alternate, in their
// order. A nil value, pointer, slice or map is left out: the field then takes
// the service's default or is derived there.
func object(pairs ...any) jsontext.Value {
	b := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		if isNil(pairs[i+1]) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, pairs[i]), ':')
		b = appendJSON(b, pairs[i+1])
	}
	return append(b, '}')
}

func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return r.IsNil()
	case reflect.Invalid:
		return true
	}
	return false
}

// appendJSON writes free-form members in the order of their names, so that the
// same source gives the same bytes.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("importer: texts and scalars are always JSON: %v", err))
	}
	return append(b, text...)
}

// present makes a free-form object of the texts that are not empty.
func present(texts map[string]string) map[string]any {
	kept := map[string]any{}
	for name, text := range texts {
		if text != "" {
			kept[name] = text
		}
	}
	return kept
}

// orNil is nil for an empty text.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
