package worker

import (
	"iter"
	"time"
)

// batchWindow is how long the first message of a batch waits for more. It
// delays bookkeeping, never an attempt, and only behind an attempt that takes
// longer.
const batchWindow = 20 * time.Millisecond

// batches yields together the messages that arrive within a window, and the
// rest as soon as no more can come. So a slow message does not hold back the
// others.
func batches(arriving <-chan *message) iter.Seq[[]*message] {
	return func(yield func([]*message) bool) {
		for first := range arriving {
			batch, window := []*message{first}, time.After(batchWindow)
			for full := false; !full; {
				select {
				case m, more := <-arriving:
					if full = !more; more {
						batch = append(batch, m)
					}
				case <-window:
					full = true
				}
			}
			if !yield(batch) {
				return
			}
		}
	}
}
