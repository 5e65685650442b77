package indexer

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// TestTheRegisterIsWrittenEvenly counts the organizations that are registered in each
// hour of a week: they have one partition key, which takes 1,000 writes a second.
func TestTheRegisterIsWrittenEvenly(t *testing.T) {
	const organizations = 20_000
	perHour := map[time.Duration]int{}
	for range organizations {
		perHour[registeredFrom(value.NewID()).Truncate(time.Hour)]++
	}
	for hour, n := range perHour {
		if most := 2 * organizations / (7 * 24); hour < 0 || hour >= flushWithin || n > most {
			t.Errorf("%d organizations are registered at %s, want at most %d", n, hour, most)
		}
	}
}
