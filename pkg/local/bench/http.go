package bench

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	connections = 16
	// items is how many different records are asked for by id.
	items = 1000
)

// searches are requests with a filter, a search, an order and the total: for
// things, each second one of a material, and the first three pages of each
// where there are so many.
func searches(products int) (targets []string) {
	pages := 1
	if products >= 50_000 {
		pages = 3
	}
	for i, thing := range strings.Fields(things) {
		words := thing
		if i%2 == 1 {
			words += " " + strings.Fields(materials)[i/2%len(strings.Fields(materials))]
		}
		for page := 1; page <= pages; page++ {
			query := url.Values{"isActive": {"true"}, "search": {words}, "orderBy": {"sellingPrice"}, "orderDirection": {"desc"}}
			if page > 1 {
				query.Set("page", strconv.Itoa(page))
			}
			targets = append(targets, "/api/products?"+query.Encode())
		}
	}
	return targets
}

// measureHTTP is the section of requests over HTTP.
func measureHTTP(ctx context.Context, b *bench) error {
	s, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	t := b.table("Over HTTP")
	t.note = fmt.Sprintf("%s products; %d connections, kept open, of a client in this process; %s each after %s of warm-up. Pages of 20 records. "+
		"CPU is the time of this process (client, gateway and functions) and of the table server for one request: on a busy machine it tells more than rates.",
		thousands(s.products), connections, b.cfg.Duration, b.warmup())
	byID := make([]string, min(items, s.products))
	for i := range byID {
		byID[i] = "/api/products/" + s.shop.productID(i*s.products/len(byID)).String()
	}
	for _, row := range []struct {
		profile  string
		name     string
		targets  []string
		encoding string
		rate     float64
		p99      time.Duration
	}{
		{"search", "list: filter, search, order, total", searches(s.products), "identity", 1500, 40 * time.Millisecond},
		{"search-gzip", "list: filter, search, order, total; gzip", searches(s.products), "gzip", 0, 0},
		{"newest", "list: newest first", []string{"/api/products"}, "identity", 2000, 0},
		{"newest-gzip", "list: newest first; gzip", []string{"/api/products"}, "gzip", 0, 0},
	} {
		outcome, err := b.request(ctx, s, row.profile, row.targets, row.encoding)
		if err != nil {
			return err
		}
		t.add(row.name, rateTarget(row.rate, row.p99), "%s", rateOf(outcome))
	}
	return b.measureItems(ctx, s, t, byID)
}

// measureItems compares records by id with what the table itself answers.
func (b *bench) measureItems(ctx context.Context, s *service, t *table, byID []string) error {
	var raw float64
	var cpu string
	err := b.profiled("table", func() (err error) {
		raw, cpu, err = b.rawReads(ctx, s)
		return err
	})
	if err != nil {
		return err
	}
	outcome, err := b.request(ctx, s, "item", byID, "identity")
	if err != nil {
		return err
	}
	t.add("the table alone: GetItem, strongly consistent, by the SDK, 16 workers", "", "%s/s, CPU %s", thousands(int(raw)), cpu)
	t.add("record by id, read strongly consistent", fmt.Sprintf("≥ %s/s (the table alone less 20%%)", thousands(int(raw*0.8))),
		"%s, %.0f%% of the table alone", rateOf(outcome), 100*outcome.PerSecond()/raw)
	return nil
}

// request makes a load on the API; an answer that is not what it has to be
// fails the run.
func (b *bench) request(ctx context.Context, s *service, profile string, targets []string, encoding string) (*Outcome, error) {
	load := Load{
		Address: hostOf(s.info.BaseURL), Targets: targets, Header: s.header(encoding), Connections: connections,
		Warmup: b.warmup(), Duration: b.cfg.Duration, Check: checkPage,
	}
	if !strings.Contains(targets[0], "?") && targets[0] != "/api/products" {
		load.Check = checkItem
	}
	var outcome *Outcome
	err := b.profiled(profile, func() (err error) {
		outcome, err = load.Run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if outcome.Failures > 0 {
		return nil, fmt.Errorf("%d of %d answers were wrong: %w", outcome.Failures, outcome.Requests, outcome.Failure)
	}
	return outcome, nil
}

// rawReads is how many strongly consistent reads of a product the table
// answers per second, to as many workers through the SDK as there are
// connections otherwise.
func (b *bench) rawReads(ctx context.Context, s *service) (rate float64, cpu string, err error) {
	keys, err := s.productKeys(ctx)
	if err != nil {
		return 0, "", err
	}
	begin := time.Now().Add(b.warmup())
	end := begin.Add(b.cfg.Duration)
	var reads, all atomic.Int64
	used := processorNow()
	errs := make([]error, connections)
	var group sync.WaitGroup
	for w := range connections {
		group.Go(func() {
			for i := w * len(keys) / connections; ; i++ {
				started := time.Now()
				if started.After(end) {
					return
				}
				out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
					TableName: &s.info.TableName, Key: keys[i%len(keys)], ConsistentRead: aws.Bool(true),
				})
				if err != nil {
					errs[w] = err
					return
				}
				if len(out.Item) == 0 {
					errs[w] = fmt.Errorf("no item at %v", keys[i%len(keys)])
					return
				}
				all.Add(1)
				if started.After(begin) && time.Now().Before(end) {
					reads.Add(1)
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, "", fmt.Errorf("read the table: %w", err)
		}
	}
	return float64(reads.Load()) / b.cfg.Duration.Seconds(), processorNow().since(used).per(int(all.Load())), nil
}

type key = map[string]types.AttributeValue

// recordShards is how many partitions the records of a kind are spread over.
const recordShards = 16

// productKeys finds the keys of some products in each of the partitions that
// they are spread over.
func (s *service) productKeys(ctx context.Context) ([]key, error) {
	var keys []key
	for shard := range recordShards {
		partition := fmt.Sprintf("ORG#%s#PRODUCT#%x", s.info.OrganizationID, shard)
		page, err := s.client.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.info.TableName, KeyConditionExpression: aws.String("PK = :shard"), ProjectionExpression: aws.String("PK, SK"),
			ExpressionAttributeValues: key{":shard": &types.AttributeValueMemberS{Value: partition}}, Limit: aws.Int32(items / recordShards),
		})
		if err != nil {
			return nil, fmt.Errorf("find products in the table: %w", err)
		}
		keys = append(keys, page.Items...)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the table has no products of %s", s.info.OrganizationID)
	}
	return keys, nil
}

func rateOf(o *Outcome) string {
	return fmt.Sprintf("%s/s, p50 %s, p99 %s, %.1f KB, CPU %s", thousands(int(o.PerSecond())), milliseconds(o.Percentile(50)), milliseconds(o.Percentile(99)),
		float64(o.Bytes)/1000/float64(max(1, o.Requests)), o.CPU.per(o.All))
}

func rateTarget(rate float64, p99 time.Duration) string {
	switch {
	case rate == 0:
		return ""
	case p99 == 0:
		return fmt.Sprintf("≥ %s/s", thousands(int(rate)))
	}
	return fmt.Sprintf("≥ %s/s, p99 ≤ %s", thousands(int(rate)), milliseconds(p99))
}
