// Package value holds the scalar types of the whole service: identifiers,
// instants and exact amounts. Each has one canonical form in JSON, refuses
// input that it cannot represent exactly, and never passes through a binary
// float.
package value

// Or returns what p points to, or the other value when p is nil.
func Or[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}
