//go:build !unix

package runner

import "os"

// lock does nothing here, where the system has no flock: another process is not kept out.
func lock(*os.File) error { return nil }
