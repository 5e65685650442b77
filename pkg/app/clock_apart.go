//go:build clocks

package app

import (
	"time"

	"github.com/commerce-integration/service/pkg/local/clocks"
)

var offset = clocks.OfProcess()

// clock differs from process to process, in builds for lab chaos.
func clock() time.Time { return time.Now().Add(offset) }
