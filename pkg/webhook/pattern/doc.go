// Package pattern decides whether a JSON object matches an event pattern: the
// language in which EventBridge's rules select events, as AWS documents it. A
// pattern is compiled once and may then be used by several goroutines; a
// document is parsed once and may be asked by several patterns. Numbers are
// compared as exact decimals. What the objects mean is left to the caller.
//
// # The language
//
// A pattern is a JSON object of the structure of what it selects. All of its
// fields, whose names are not empty, must match. A field has a nested object, or
// an array of conditions of which one must hold:
//
//	"text", 12.5, true, null           is equal to it; 12.5, 12.50 and 125e-1 are equal
//	{"prefix": "a"}, {"suffix": "a"}   text that begins, or ends, with it
//	{"equals-ignore-case": "a"}        text that is equal apart from case, by Unicode's simple case folding
//	{"prefix": {"equals-ignore-case": "a"}}, and suffix likewise
//	{"wildcard": "a*b"}                text in which * is any text; \* is an asterisk, \\ a backslash
//	{"numeric": [">", 0, "<=", 5]}     a number within bounds, of which one may be left out; or ["=", 5]
//	{"anything-but": "a"}              a value that is not this one: a text or a number, or an array of either
//	{"anything-but": {"prefix": "a"}}  also suffix, wildcard and equals-ignore-case, each with a text or an array of them
//	{"exists": true}                   there is a value, null included
//	{"exists": false}                  there is none
//	{"$or": [{…}, {…}]}                next to fields: one of at least two patterns matches the same object
//
// Conditions are about values, which are texts, numbers, true, false and null.
// Those of an array hold when they do for one of its values. An array without
// values, an object, and a field that is not there have no value: only
// {"exists": false} holds for them. So anything-but holds for null, and not for
// a field that is not there.
//
// A nested object matches an array when it matches one of its objects, all
// fields in the same one. In place of anything else, null included, it is
// matched as if none of its fields were there.
//
// # What differs from EventBridge
//
// These are the differences from its engine, Event Ruler 2.1.
// Its numbers are binary floating point within a range; here they are decimals.
// In an array of objects its exists: false looks at all of them together, here
// each object is looked at by itself. Of a field that is both next to $or and in an
// alternative it keeps the later conditions only; here both must hold. A field's
// name with points is a path there, and ß equals SS where case is ignored, but
// letters beyond U+FFFF keep theirs; here a name is a name, and case is folded
// letter by letter. It takes empty texts of prefix, suffix, equals-ignore-case and
// wildcard, and a $or other than an array of objects as a field's name; here they
// are refused. cidr is not known here.
//
// # Why not a library
//
// quamina.net/go/quamina 1.5 has no numeric bounds, $or, suffix, nor anything-but
// for numbers; its numbers are float64, which many amounts of four decimals are
// not, and its automata can grow exponentially with wildcards. It is made for
// thousands of patterns on one stream of events, where an endpoint has one.
//
// # Cost
//
// A pattern has at most [MaxBytes] bytes, [MaxLevels] levels, [MaxConditions]
// conditions and [MaxStars] asterisks in a wildcard. Matching takes time
// proportional to the conditions times the size of the document at most.
package pattern
