package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/pause"
)

const (
	// senders is how many messages are being sent at a time.
	senders = 4
	// arrival bounds the time in which lists show what was sent, per record
	// and on top of a start.
	arrivalStart, arrivalPerRecord = time.Minute, 4 * time.Millisecond
)

// hold sees to it that the service holds as many products: it sends those that
// are missing through the records queue, and waits until the list shows them.
// It returns how many it sent.
func (s *service) hold(ctx context.Context, products int) (sent int, err error) {
	have, err := s.total(ctx, "/api/products?limit=1")
	if err != nil {
		return 0, err
	}
	if have > products {
		return 0, fmt.Errorf("the data folder holds %d already", have)
	}
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for from := have; from < products; from += perMessage {
		group.Go(func() error { return s.send(sending, from, min(from+perMessage, products), 0) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if err := s.await(ctx, "/api/products?limit=1", products); err != nil {
		return 0, err
	}
	s.products = products
	return products - have, nil
}

// send puts products from to below into one message. A version other than 0
// makes each a change of what is stored.
func (s *service) send(ctx context.Context, from, to, version int) error {
	var products []*commerce.Product
	for n := from; n < to; n++ {
		product := s.shop.product(n)
		if version > 0 {
			product.Name = fmt.Sprintf("%s v%d", product.Name, version)
		}
		products = append(products, product)
	}
	return sendProducts(ctx, s.queues, s.info.RecordsQueueURL, products, true)
}

// await asks for a list until it has as many entries.
func (s *service) await(ctx context.Context, path string, entries int) error {
	ctx, cancel := context.WithTimeout(ctx, arrivalStart+time.Duration(entries)*arrivalPerRecord)
	defer cancel()
	for {
		total, err := s.total(ctx, path)
		if err == nil && total == entries {
			return nil
		}
		if waited := pause.For(ctx, 100*time.Millisecond); waited != nil {
			return fmt.Errorf("%s has %d of %d entries, error %w", path, total, entries, err)
		}
	}
}

// total is how many entries a list has. A service that is busy is asked again.
func (s *service) total(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, arrivalStart)
	defer cancel()
	for {
		status, body, err := s.get(ctx, path)
		if err != nil {
			return 0, err
		}
		if status == http.StatusServiceUnavailable && pause.For(ctx, 100*time.Millisecond) == nil {
			continue
		}
		if status != http.StatusOK {
			return 0, fmt.Errorf("GET %s: status %d: %.200s", path, status, body)
		}
		var page struct {
			Meta struct {
				Total int `json:"total"`
			} `json:"meta"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return 0, fmt.Errorf("GET %s: %w", path, err)
		}
		return page.Meta.Total, nil
	}
}

// get asks the API once, with the application's key.
func (s *service) get(ctx context.Context, path string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.info.BaseURL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header = s.header("identity")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// header is what a client of the read API sends.
func (s *service) header(encoding string) http.Header {
	return http.Header{
		"X-Api-Key": {s.info.APIKey}, "Accept": {"application/json"}, "Accept-Encoding": {encoding}, "User-Agent": {"commerce-bench"},
	}
}
