//go:build !unix

package bench

import "time"

// ownProcessor is the processor time of this process so far, which is not
// told here.
func ownProcessor() time.Duration { return 0 }
