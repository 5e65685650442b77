//go:build indexnext

package index

// Format is that of a release to come, for tests that run both side by side.
const Format = 5
