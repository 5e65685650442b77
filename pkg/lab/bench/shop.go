package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

const (
	// senders is how many messages are being sent at a time, and perMessage how
	// many products each holds.
	senders, perMessage = 4, 400
	// A list shows all records within startTime and recordTime for each of them.
	startTime, recordTime = time.Minute, 4 * time.Millisecond
)

// shop is the service within this process and the products of its first
// organization, whose application may make as many requests as any may.
type shop struct {
	*workload.Embedded
	api          *apiclient.Client
	organization value.ID
	products     int // that it holds
}

func newShop(ctx context.Context, running *workload.Embedded) (*shop, error) {
	s := &shop{Embedded: running, api: apiclient.NewWithKey(running.Info.BaseURL, running.Info.APIKey)}
	application, err := value.ParseID(s.Info.ApplicationID)
	if err == nil {
		s.organization, err = value.ParseID(s.Info.OrganizationID)
	}
	if err != nil {
		return nil, fmt.Errorf("the service's organization and application: %w", err)
	}
	table := dynamo.New(s.Table, s.Info.TableName, time.Now)
	_, err = table.ChangeApplication(ctx, s.organization, application, func(a *account.Application) (bool, error) {
		return a.SetRateLimit(account.MaxRateLimit, value.TimeOf(time.Now()))
	})
	return s, err
}

// stocked is the embedded service with the products of the configuration: it
// sends those that are missing through the records queue, and waits until the
// list shows them.
func (b *bench) stocked(ctx context.Context) (*shop, error) {
	s, err := b.embed(ctx)
	if err != nil || s.products == b.Products {
		return s, err
	}
	started := time.Now()
	have, err := s.total(ctx, "/api/products?limit=1")
	if err != nil {
		return nil, err
	}
	if have > b.Products {
		return nil, fmt.Errorf("the data folder holds %d products already", have)
	}
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for from := have; from < b.Products; from += perMessage {
		group.Go(func() error { return s.send(sending, from, min(from+perMessage, b.Products), 0) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := s.await(ctx, "/api/products?limit=1", b.Products); err != nil {
		return nil, err
	}
	s.products = b.Products
	if took := time.Since(started).Seconds(); have < b.Products {
		b.progress("%s products loaded through the queue in %.1f s", thousands(b.Products-have), took)
	}
	return s, nil
}

// send puts products into one message. A version other than 0 makes each a
// change of what is stored.
func (s *shop) send(ctx context.Context, from, to, version int) error {
	var products []*commerce.Product
	for n := from; n < to; n++ {
		product := workload.Product(s.organization, n)
		if version > 0 {
			product.Name = fmt.Sprintf("%s v%d", product.Name, version)
		}
		products = append(products, product)
	}
	return s.Store(ctx, s.organization, products)
}

// await asks for a list until it has so many records.
func (s *shop) await(ctx context.Context, path string, records int) error {
	ctx, cancel := context.WithTimeout(ctx, startTime+time.Duration(records)*recordTime)
	defer cancel()
	for {
		total, err := s.total(ctx, path)
		if err == nil && total == records {
			return nil
		}
		if waited := pause.For(ctx, 100*time.Millisecond); waited != nil {
			return fmt.Errorf("%s has %d of %d records, error %w", path, total, records, err)
		}
	}
}

// total is how many records a list has. A service that is busy is asked again.
func (s *shop) total(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		var page struct {
			Meta struct {
				Total int `json:"total"`
			} `json:"meta"`
		}
		err := s.api.Get(ctx, path, &page)
		if apiclient.Refused(err) == http.StatusServiceUnavailable && pause.For(ctx, 100*time.Millisecond) == nil {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("GET %s: %w", path, err)
		}
		return page.Meta.Total, nil
	}
}

// header is what a client of the read API sends.
func (s *shop) header(encoding string) http.Header {
	return http.Header{
		"X-Api-Key": {s.Info.APIKey}, "Accept": {"application/json"}, "Accept-Encoding": {encoding}, "User-Agent": {"commerce-bench"},
	}
}
