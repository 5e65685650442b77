package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

// shop is the products of a service's first organization, whose application may make as many requests as any may.
type shop struct {
	api          *apiclient.Client
	organization value.ID
	products     int
}

// openShop sends products through the records queue, and waits until the list shows them.
func openShop(ctx context.Context, s *workload.Service, products int) (*shop, error) {
	organization, wrong := value.ParseID(s.Info.OrganizationID)
	application, err := value.ParseID(s.Info.ApplicationID)
	if err := errors.Join(wrong, err); err != nil {
		return nil, fmt.Errorf("the service's organization and application: %w", err)
	}
	table := dynamo.New(s.Table, s.Info.TableName, time.Now)
	if _, err = table.ChangeApplication(ctx, organization, application, func(a *account.Application) (bool, error) {
		return a.SetRateLimit(account.MaxRateLimit, value.TimeOf(time.Now()))
	}); err != nil {
		return nil, err
	}
	if err := s.Store(ctx, organization, products); err != nil {
		return nil, err
	}
	shop := &shop{apiclient.NewWithKey(s.Info.BaseURL, s.Info.APIKey), organization, products}
	return shop, shop.await(ctx)
}

// await waits until the list shows all products.
func (s *shop) await(ctx context.Context) error {
	const startTime, recordTime = time.Minute, 4 * time.Millisecond // it shows all within these
	ctx, cancel := context.WithTimeout(ctx, startTime+time.Duration(s.products)*recordTime)
	defer cancel()
	for {
		var page struct {
			Meta struct {
				Total int `json:"total"`
			} `json:"meta"`
		}
		err := s.api.Get(ctx, "/api/products?limit=1", &page)
		if err == nil && page.Meta.Total == s.products {
			return nil
		}
		if waited := pause.For(ctx, 100*time.Millisecond); waited != nil {
			return fmt.Errorf("the list has %d of %d products: %w", page.Meta.Total, s.products, errors.Join(err, waited))
		}
	}
}

// searches are requests with a filter, a search, an order and the total.
func searches() (targets []string) {
	for thing := range strings.FieldsSeq(workload.Things) {
		query := url.Values{"isActive": {"true"}, "search": {thing}, "orderBy": {"sellingPrice"}, "orderDirection": {"desc"}}
		targets = append(targets, "/api/products?"+query.Encode())
	}
	return targets
}

// itemTargets are the paths of some products, spread evenly.
func (s *shop) itemTargets() []string {
	targets := make([]string, min(1000, s.products))
	for i := range targets {
		targets[i] = "/api/products/" + workload.ProductID(s.organization, i*s.products/len(targets)).String()
	}
	return targets
}

// reads measures lists and records by id.
func (b *bench) reads(ctx context.Context) error {
	shop, err := openShop(ctx, b.service, b.Products)
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
		{"record by id", shop.itemTargets(), many, 0},
	} {
		ask := &asker{base: b.service.Info.BaseURL, key: b.service.Info.APIKey, targets: row.targets, connections: row.connections, every: row.every}
		err := b.measure(ctx, row.name, row.connections, func() (figures, error) { return ask.run(ctx, b.Duration) })
		if err != nil {
			return err
		}
	}
	return nil
}
