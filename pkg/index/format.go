//go:build !indexnext

package index

// Format is the number of the byte formats that this release writes: those of
// manifests, segments and rebuilds together.
const Format = 4
