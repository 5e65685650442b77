package indexer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/retry"
)

// tailKey is a list's tail as its writers see it: a conditional put of the next
// entry, whose failure is charged too.
type tailKey struct {
	mu       sync.Mutex
	sequence int
	units    float64 // write units so far, failed tries included
	failed   int
}

// The times of a call of the table, and what an append may try, as package
// dynamo has them.
const (
	readTime, putTime = 4 * time.Millisecond, 6 * time.Millisecond
	appendTries       = 20
)

// append appends an entry of so many bytes.
func (k *tailKey) append(ctx context.Context, bytes int) error {
	return retry.Contended(ctx, appendTries, func() (bool, error) {
		time.Sleep(readTime)
		k.mu.Lock()
		end := k.sequence
		k.mu.Unlock()
		time.Sleep(putTime)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.units += float64((bytes + 1023) / 1024)
		if k.sequence != end {
			k.failed++
			return false, nil
		}
		k.sequence++
		return true, nil
	})
}

// TestTheTailOfAnImportStaysBelowWhatItsKeyTakes simulates 20 s of one
// organization's import of 1,000 records a second, spread over the shards of
// the stream. A shard is read four times a second, its batch is one entry of 60
// bytes a change, and the next waits until it is appended.
func TestTheTailOfAnImportStaysBelowWhatItsKeyTakes(t *testing.T) {
	const perSecond, entryBytes, polls, seconds, units = 1000, 60, 4, 20, 1000
	for _, shards := range []int{1, 8, 50} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key, lost := &tailKey{}, 0
				var mu sync.Mutex
				start := time.Now()
				var group sync.WaitGroup
				for n := range shards {
					group.Go(func() {
						time.Sleep(time.Duration(n) * time.Second / polls / time.Duration(shards))
						for last := start; time.Since(start) < seconds*time.Second; {
							now := time.Now()
							changes := max(1, int(float64(perSecond)/float64(shards)*now.Sub(last).Seconds()))
							if err := key.append(t.Context(), changes*entryBytes); err != nil {
								mu.Lock()
								lost++ // the stream delivers the batch again
								mu.Unlock()
							} else {
								last = now
							}
							time.Sleep(time.Second / polls)
						}
					})
				}
				group.Wait()
				took := time.Since(start).Seconds()
				t.Logf("%d shards: %.0f units/s, %.0f entries/s, %.0f failed tries/s, %d batches again", shards, key.units/took,
					float64(key.sequence)/took, float64(key.failed)/took, lost)
				if rate := key.units / took; rate > units {
					t.Errorf("the key gets %.0f units a second, takes %d", rate, units)
				}
			})
		})
	}
}
