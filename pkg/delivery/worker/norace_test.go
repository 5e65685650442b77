//go:build !race

package worker_test

// scale divides the size of tests that take minutes under the race detector.
const scale = 1
