// Package value holds the scalar types that every part of the service
// shares: identifiers, instants and exact amounts. Each has one canonical
// form on the wire, refuses what it cannot represent exactly, and never
// passes through a binary float. What a value means (a price, a due date)
// is left to the packages that use it.
package value
