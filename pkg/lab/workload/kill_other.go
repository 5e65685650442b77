//go:build !unix

package workload

import "errors"

func killGroup(int) error { return errors.New("processes are killed on Unix only") }
