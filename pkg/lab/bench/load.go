package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/lab/workload"
)

// answers are what requests came to.
type answers struct {
	latencies workload.Latencies // of those within the duration, in ascending order
	all       int                // those of the warm-up included
}

// ask lets each of the connections ask for the targets in turn, one request at a time, first for a warm-up. It fails
// when a connection breaks or an answer is wrong.
func (b *bench) ask(ctx context.Context, base, key string, targets []string) (*answers, error) {
	begin := time.Now().Add(min(time.Second, b.Duration/2))
	end := begin.Add(b.Duration)
	group, asking := errgroup.WithContext(ctx)
	by := make([]answers, connections)
	for number := range connections {
		group.Go(func() error {
			c := connection{transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}, key: key}
			defer c.transport.CloseIdleConnections()
			for n := number * len(targets) / connections; ; n++ {
				started := time.Now()
				if started.After(end) {
					return nil
				}
				if err := c.get(asking, base+targets[n%len(targets)]); err != nil {
					return err
				}
				by[number].all++
				if ended := time.Now(); started.After(begin) && ended.Before(end) {
					by[number].latencies = append(by[number].latencies, ended.Sub(started))
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	total := &answers{}
	for _, a := range by {
		total.all += a.all
		total.latencies = append(total.latencies, a.latencies...)
	}
	slices.Sort(total.latencies)
	return total, nil
}

// connection is a client's connection, which stays open.
type connection struct {
	transport *http.Transport
	key       string
	body      bytes.Buffer
}

func (c *connection) get(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header = http.Header{"X-Api-Key": {c.key}, "Accept": {"application/json"}, "Accept-Encoding": {"identity"}}
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	defer answer.Body.Close()
	c.body.Reset()
	if _, err = c.body.ReadFrom(answer.Body); err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK || answer.Close || !bytes.Contains(c.body.Bytes(), []byte(`"id":"`)) {
		return fmt.Errorf("GET %s: no record: status %d, connection closed: %t, %.200s", url, answer.StatusCode, answer.Close, c.body.Bytes())
	}
	return nil
}
