package runner

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// slow is a client whose requests take a second each. It keeps when those of each size began, in seconds.
type slow struct {
	mu    sync.Mutex
	start time.Time
	began map[int64][]float64
}

func (s *slow) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.began[r.ContentLength] = append(s.began[r.ContentLength], time.Since(s.start).Seconds())
	s.mu.Unlock()
	<-time.After(time.Second)
	return nil, nil //nolint:nilnil // nobody looks
}

func TestASmallRequestDoesNotWaitForTheLargeOnesAndHugeOnesLeavePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{start: time.Now(), began: map[int64][]float64{}}
		client := &httpClient{inner, semaphore.NewWeighted(maxLarge), semaphore.NewWeighted(1)}
		want := map[int64][]float64{
			largeBytes:     {0, 0, 0, 0, 0},
			largeBytes + 1: {0, 0, 1, 1, 2},
			hugeBytes + 1:  {0, 2, 4},
		}
		var requests sync.WaitGroup
		for size, times := range want {
			for range times {
				requests.Go(func() {
					request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://table.test", strings.NewReader(strings.Repeat("x", int(size))))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = client.Do(request)
				})
			}
		}
		requests.Wait()
		<-time.After(time.Minute)
		for size, times := range want {
			if got := inner.began[size]; !slices.Equal(got, times) {
				t.Errorf("requests of %d bytes began after %v s, want %v", size, got, times)
			}
		}
	})
}
