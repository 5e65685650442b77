package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

const (
	connections = 16   // clients that ask at a time
	sampleItems = 1000 // different records that are asked for by id
	// A list shows all records within startTime and recordTime for each of them.
	startTime, recordTime = time.Minute, 4 * time.Millisecond
)

// shop is the products of a service's first organization, whose application may make as many requests as any may.
type shop struct {
	*service
	api          *apiclient.Client
	organization value.ID
	products     int
}

// stock sends products through the records queue, and waits until the list shows them.
func (s *service) stock(ctx context.Context, count int) (*shop, error) {
	shop := &shop{service: s, api: apiclient.NewWithKey(s.Info.BaseURL, s.Info.APIKey), products: count}
	application, err := value.ParseID(s.Info.ApplicationID)
	if err == nil {
		shop.organization, err = value.ParseID(s.Info.OrganizationID)
	}
	if err != nil {
		return nil, fmt.Errorf("the service's organization and application: %w", err)
	}
	table := dynamo.New(s.Table, s.Info.TableName, time.Now)
	if _, err = table.ChangeApplication(ctx, shop.organization, application, func(a *account.Application) (bool, error) {
		return a.SetRateLimit(account.MaxRateLimit, value.TimeOf(time.Now()))
	}); err != nil {
		return nil, err
	}
	products := make([]*commerce.Product, count)
	for n := range products {
		products[n] = workload.Product(shop.organization, n)
	}
	if err := s.Store(ctx, shop.organization, true, products); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime+time.Duration(count)*recordTime)
	defer cancel()
	for total := 0; total < count; {
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("the list has %d of %d products: %w", total, count, err)
		}
		var page struct {
			Meta struct {
				Total int `json:"total"`
			} `json:"meta"`
		}
		err := shop.api.Get(ctx, "/api/products?limit=1", &page)
		if err != nil && apiclient.Refused(err) != http.StatusServiceUnavailable {
			return nil, fmt.Errorf("wait for the list: %w", err)
		}
		total = page.Meta.Total
	}
	return shop, nil
}

// searches are requests with a filter, a search, an order and the total: for things, and where there are many products
// each second one of a material, and the first three pages of each.
func searches(products int) (targets []string) {
	materials := strings.Fields(workload.Materials)
	many, pages := products >= 50_000, 1
	if many {
		pages = 3
	}
	for i, words := range strings.Fields(workload.Things) {
		if many && i%2 == 1 {
			words += " " + materials[i/2%len(materials)]
		}
		for page := range pages {
			query := url.Values{"isActive": {"true"}, "search": {words}, "orderBy": {"sellingPrice"}, "orderDirection": {"desc"}, "page": {strconv.Itoa(page + 1)}}
			targets = append(targets, "/api/products?"+query.Encode())
		}
	}
	return targets
}

// itemTargets are the paths of some products, spread evenly.
func (s *shop) itemTargets() []string {
	targets := make([]string, min(sampleItems, s.products))
	for i := range targets {
		targets[i] = "/api/products/" + workload.ProductID(s.organization, i*s.products/len(targets)).String()
	}
	return targets
}

// reads is the section of lists, records by id and the feed.
func (b *bench) reads(ctx context.Context) error {
	t := newTable(fmt.Sprintf("Reads over HTTP, %s products, %d connections", thousands(b.Products), connections), "a second", "p50", "p99", "service", "table", "client")
	t.note = fmt.Sprintf("The best of %d rounds of %s; then the CPU of one answer. A list has pages of 20. "+
		"One client reads the feed, with 1,000 changes in an answer; its figures are of one change.", b.Rounds, b.Duration)
	err := b.withService(ctx, nil, func(s *service) error {
		shop, err := s.stock(ctx, b.Products)
		if err != nil {
			return err
		}
		for _, row := range []struct {
			name    string
			targets []string
		}{
			{"list: filter, search, order, total", searches(b.Products)},
			{"list: no filter, newest first", []string{"/api/products"}},
			{"record by id", shop.itemTargets()},
		} {
			var best []string
			most := 0
			for range b.Rounds {
				before, own := s.process.CPU(), workload.OwnCPU()
				l, err := b.ask(ctx, s.Info.BaseURL, s.Info.APIKey, row.targets)
				if err != nil {
					return err
				}
				if used, client := s.process.CPU().Since(before), workload.OwnCPU().Since(own); len(l.latencies) > most {
					most = len(l.latencies)
					best = []string{
						thousands(int(float64(most) / b.Duration.Seconds())), milliseconds(l.latencies.Percentile(50)), milliseconds(l.latencies.Percentile(99)),
						each(used.Own, l.all), each(used.Table, l.all), each(client.Own, l.all),
					}
				}
			}
			t.add(row.name, best...)
		}
		return shop.feed(ctx, t)
	})
	if err != nil {
		return err
	}
	t.print(b.Out)
	return nil
}

// feed reads the feed from its beginning to its end.
func (s *shop) feed(ctx context.Context, t *table) error {
	before, own, started, changes := s.process.CPU(), workload.OwnCPU(), time.Now(), 0
	for after, more := "", true; more; {
		var page struct {
			Data []jsontext.Value `json:"data"`
			Meta struct {
				Next string `json:"next"`
				More bool   `json:"more"`
			} `json:"meta"`
		}
		if err := s.api.Get(ctx, "/api/changes?limit=1000"+after, &page); err != nil {
			return fmt.Errorf("read the feed: %w", err)
		}
		changes += len(page.Data)
		after, more = "&after="+page.Meta.Next, page.Meta.More
	}
	took, used, client := time.Since(started), s.process.CPU().Since(before), workload.OwnCPU().Since(own)
	t.add(fmt.Sprintf("feed: caught up in %.1f s", took.Seconds()), thousands(int(float64(changes)/took.Seconds())), "", "",
		each(used.Own, changes), each(used.Table, changes), each(client.Own, changes))
	return nil
}

// requestUnits adds what requests use of the table.
func (b *bench) requestUnits(ctx context.Context, s *service, t *table) error {
	shop, err := s.stock(ctx, min(b.Products, sampleItems))
	if err != nil {
		return err
	}
	if err := pause.For(ctx, listsLag); err != nil {
		return err
	}
	const seconds = 10
	for _, ask := range []struct {
		name    string
		targets []string
		every   time.Duration
	}{
		{"list, warm, one request a second", slices.Repeat([]string{"/api/products"}, seconds), time.Second},
		{"record by id", shop.itemTargets(), 0},
	} {
		err := s.metered(t, ask.name, func() (int, error) {
			for _, target := range ask.targets {
				if err := pause.For(ctx, ask.every); err != nil {
					return 0, err
				}
				if err := shop.api.Get(ctx, target, nil); err != nil {
					return 0, err
				}
			}
			return len(ask.targets), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
