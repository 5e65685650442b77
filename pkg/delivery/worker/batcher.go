package worker

import (
	"iter"
	"time"
)

// batchWindow is how long the first message of a batch waits for more. It
// delays bookkeeping, never an attempt, and only behind an attempt that takes
// longer.
const batchWindow = 20 * time.Millisecond

// batches yields together those of n messages that arrive within a window, and
// the rest as soon as the last one has arrived. So a slow message does not
// hold back the others.
func batches(arriving <-chan *message, n int) iter.Seq[[]*message] {
	return func(yield func([]*message) bool) {
		for n > 0 {
			batch, window := []*message{<-arriving}, time.After(batchWindow)
			n--
			for full := false; n > 0 && !full; {
				select {
				case m := <-arriving:
					batch = append(batch, m)
					n--
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
