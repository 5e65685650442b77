package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

// stock fills the service's first organization with products, waits until the list shows them, and lets its application
// make as many requests as any may.
func (b *bench) stock(ctx context.Context) (organization value.ID, err error) {
	info := b.service.Info
	organization, wrong := value.ParseID(info.OrganizationID)
	application, err := value.ParseID(info.ApplicationID)
	if err := errors.Join(wrong, err); err != nil {
		return organization, fmt.Errorf("the service's organization and application: %w", err)
	}
	table := dynamo.New(b.service.Table, info.TableName, time.Now)
	if _, err = table.ChangeApplication(ctx, organization, application, func(a *account.Application) (bool, error) {
		return a.SetRateLimit(account.MaxRateLimit, value.TimeOf(time.Now()))
	}); err != nil {
		return organization, err
	}
	if err := b.service.Store(ctx, organization, b.Products); err != nil {
		return organization, err
	}
	client := apiclient.NewWithKey(info.BaseURL, info.APIKey)
	return organization, workload.AwaitTotal(ctx, client, "/api/products?limit=1", b.Products)
}

// searches are requests with a filter, a search, an order and the total.
func searches() (targets []string) {
	for thing := range strings.FieldsSeq(workload.Things) {
		query := url.Values{"isActive": {"true"}, "search": {thing}, "orderBy": {"sellingPrice"}, "orderDirection": {"desc"}}
		targets = append(targets, "/api/products?"+query.Encode())
	}
	return targets
}

// items are the paths of some products, spread evenly.
func (b *bench) items(organization value.ID) []string {
	targets := make([]string, min(1000, b.Products))
	for i := range targets {
		targets[i] = "/api/products/" + workload.ProductID(organization, i*b.Products/len(targets)).String()
	}
	return targets
}

// reads measures lists and records by id.
func (b *bench) reads(ctx context.Context) error {
	organization, err := b.stock(ctx)
	if err != nil {
		return err
	}
	const many = 16
	for _, row := range []struct {
		name        string
		targets     []string
		connections int
		every       time.Duration
	}{
		{"list: filter, search, order, total", searches(), many, 0},
		{"list: no filter, newest first", []string{"/api/products"}, many, 0},
		{"list: no filter, one request a second", []string{"/api/products"}, 1, time.Second},
		{"record by id", b.items(organization), many, 0},
	} {
		ask := &asker{base: b.service.Info.BaseURL, key: b.service.Info.APIKey, targets: row.targets, connections: row.connections, every: row.every}
		err := b.measure(ctx, row.name, row.connections, func() (figures, error) { return ask.run(ctx, b.Duration) })
		if err != nil {
			return err
		}
	}
	for _, row := range []struct{ name, path string }{
		{"walk, to its end", "/api/products?limit=1000&orderBy=id"},
		{"feed, caught up", "/api/changes?limit=1000"},
	} {
		if err := b.measure(ctx, row.name, 1, func() (figures, error) { return b.readAll(ctx, row.path) }); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads a walk or the feed from its beginning to its end. The figures are of its entries, the latencies of its pages.
func (b *bench) readAll(ctx context.Context, path string) (f figures, err error) {
	client := apiclient.NewWithKey(b.service.Info.BaseURL, b.service.Info.APIKey)
	started := time.Now()
	for path != "" {
		asked := time.Now()
		lines, header, err := client.Lines(ctx, path)
		if err != nil {
			return f, err
		}
		f.of, f.latencies = f.of+bytes.Count(lines, []byte("\n")), append(f.latencies, time.Since(asked))
		path = b.next(header)
	}
	slices.Sort(f.latencies)
	f.perSecond = float64(f.of) / time.Since(started).Seconds()
	return f, nil
}

// next is the path of the page that follows; "" at the end.
func (b *bench) next(header http.Header) string {
	for link := range strings.SplitSeq(header.Get("Link"), ", ") {
		if target, found := strings.CutSuffix(link, `>; rel="next"`); found {
			return strings.TrimPrefix(target, "<"+b.service.Info.BaseURL)
		}
	}
	return ""
}

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
