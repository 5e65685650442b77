package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/pause"
)

// replayed is what recorded writes came to when they were made again.
type replayed struct {
	took  time.Duration
	calls int
	table time.Duration // processor time
}

// replay makes the recorded writes again on a new table, those that came
// before the events' unmeasured.
func (w *webhooks) replay(ctx context.Context, name string, rec *recorded, connections int) (r replayed, err error) {
	server, err := w.startTable(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	table := server.Endpoint()
	if err := w.provision(ctx, table); err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for pause.For(ctx, 5*time.Second) == nil { // as often as the local service trims
			_, _ = server.Trim(ctx, serviceTable, strconv.Itoa(math.MaxInt64)) // a stream that gets long only slows the table
		}
	}()
	before, err := planned(rec.before)
	if err != nil {
		return r, err
	}
	if err := before.run(ctx, table, 1); err != nil {
		return r, err
	}
	plan, err := planned(rec.calls)
	if err != nil {
		return r, err
	}
	used, started := childrenTime("self"), time.Now()
	err = plan.run(ctx, table, connections)
	return replayed{time.Since(started), len(plan.calls), childrenTime("self") - used}, err
}

// serviceTable is the name of the local service's table.
const serviceTable = "commerce"

// provision makes the service's table on a server.
func (w *webhooks) provision(ctx context.Context, url string) error {
	model, err := template.Load(w.cfg.Template, map[string]string{"JwtIssuer": "bench", "JwtAudience": "bench"})
	if err != nil {
		return err
	}
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &url })
	_, err = provision.Table(ctx, client, model.Table, serviceTable)
	return err
}

// plan is writes with what each has to wait for.
type plan struct {
	calls []*tapped
	after [][]int // earlier calls that touch the same items
	done  []chan struct{}
}

// planned orders the writes among the calls.
func planned(calls []*tapped) (*plan, error) {
	p := &plan{}
	last := map[string]int{} // call that touched the item last
	for _, c := range calls {
		if !writes(c.operation) || c.refused {
			continue
		}
		all, err := touches(c.operation, c.body)
		if err != nil {
			return nil, err
		}
		n := len(p.calls)
		var after []int
		for _, item := range all {
			key := item.pk + "\n" + item.sk
			if earlier, met := last[key]; met && earlier != n {
				after = append(after, earlier)
			}
			last[key] = n
		}
		p.calls, p.after, p.done = append(p.calls, c), append(p.after, after), append(p.done, make(chan struct{}))
	}
	return p, nil
}

// run makes the calls in their order, as many at a time as there are
// connections. What was not refused when it was recorded must not be now.
func (p *plan) run(ctx context.Context, url string, connections int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			for n := int(next.Add(1)) - 1; n < len(p.calls); n = int(next.Add(1)) - 1 {
				for _, earlier := range p.after[n] {
					select {
					case <-p.done[earlier]:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				if _, err := askTable(ctx, client, url, p.calls[n].operation, p.calls[n].body); err != nil {
					return err
				}
				close(p.done[n])
			}
			return nil
		})
	}
	return group.Wait()
}

// askTable makes a request without the SDK, which would cost more than the
// request itself. The local server asks for the headers and does not check
// them.
func askTable(ctx context.Context, client *http.Client, url, operation string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("X-Amz-Date", "20260101T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0")
	got, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.300s", got.StatusCode, answer)
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %.300s: %w", operation, body, err)
	}
	return answer, nil
}
