// Package value holds the scalar types of the whole service: identifiers,
// instants and exact amounts. Each has one canonical form in JSON, refuses
// input that it cannot represent exactly, and never passes through a binary
// float.
package value
