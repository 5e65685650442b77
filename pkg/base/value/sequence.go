package value

import (
	"cmp"
	"strings"
)

// CompareSequences orders the sequence numbers of a stream, which are decimal numbers
// of up to 40 digits; "" is before all of them.
func CompareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
