package commerce

import (
	"errors"
	"slices"
	"strings"
)

// enum is a string type with a closed set of values on input. On output the
// sets are open: a client must expect values that later releases add.
type enum interface {
	~string
	Values() []string
}

// parseEnum accepts a value exactly as written.
func parseEnum[E enum](e *E, b []byte) error {
	values := (*e).Values()
	i := slices.Index(values, string(b))
	if i < 0 {
		return errors.New("must be one of " + strings.Join(values, ", "))
	}
	*e = E(values[i])
	return nil
}

func enumNames[E ~string](values []E) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return names
}

// orDefault returns v, or fallback when v was absent.
func orDefault[T comparable](v, fallback T) T {
	var absent T
	if v == absent {
		return fallback
	}
	return v
}

// orValue returns what p points to, or fallback when it is absent.
func orValue[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
