package bench

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

// asker asks for the targets in turn, by so many connections, each with one request at a time.
type asker struct {
	base, key   string
	targets     []string
	connections int
	every       time.Duration // between a connection's requests, at least
}

// run asks for a time, after a warm-up. It fails with the first request that does. The figures are of all answers, the
// rate and the latencies of those within the time.
func (a *asker) run(ctx context.Context, duration time.Duration) (total figures, err error) {
	begin := time.Now().Add(min(time.Second, duration/2))
	end := begin.Add(duration)
	group, asking := errgroup.WithContext(ctx)
	by := make([]figures, a.connections)
	for number := range by {
		group.Go(func() error {
			client := apiclient.NewWithKey(a.base, a.key) // with a connection of its own
			for n := number * len(a.targets) / a.connections; time.Now().Before(end); n++ {
				started := time.Now()
				if err := client.Get(asking, a.targets[n%len(a.targets)], nil); err != nil {
					return err
				}
				by[number].of++
				if ended := time.Now(); started.After(begin) && ended.Before(end) {
					by[number].latencies = append(by[number].latencies, ended.Sub(started))
				}
				if err := pause.For(asking, a.every-time.Since(started)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	for _, f := range by {
		total.of += f.of
		total.latencies = append(total.latencies, f.latencies...)
	}
	total.perSecond = float64(len(total.latencies)) / duration.Seconds()
	slices.Sort(total.latencies)
	return total, err
}
