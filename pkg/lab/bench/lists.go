package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

const (
	connections = 16   // clients that ask at a time
	sampleItems = 1000 // different records that are asked for by id
)

// searches are requests with a filter, a search, an order and the total: for
// things, and where there are many products each second one of a material,
// and the first three pages of each.
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

// lists is the section of lists over HTTP.
func (b *bench) lists(ctx context.Context) error {
	s, err := b.stocked(ctx)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("Lists over HTTP, %s products, %d connections, pages of 20", thousands(s.products), connections), loadColumns()...)
	t.note = b.howLoaded()
	newest := []string{"/api/products"}
	for _, row := range []struct {
		name, about string
		targets     []string
		encoding    string
		target      string
	}{
		{"search", "filter, search, order, total", searches(s.products), "identity", "≥ 1,500/s, p99 ≤ 40 ms"},
		{"search-gzip", "the same, compressed", searches(s.products), "gzip", ""},
		{"newest", "no filter, newest first", newest, "identity", "≥ 2,000/s"},
		{"newest-gzip", "the same, compressed", newest, "gzip", ""},
	} {
		outcome, err := b.best(row.name, func() (*Outcome, error) { return b.ask(ctx, s, row.targets, row.encoding, checkPage) })
		if err != nil {
			return err
		}
		t.add(row.about, row.target, outcome.cells()...)
	}
	return nil
}

// howLoaded says how figures of loads came to be.
func (b *bench) howLoaded() string {
	return fmt.Sprintf("The best of %d rounds of %s, each after %s of warm-up; the client is in this process and shares the processors. "+
		"CPU is the time of this process (client, gateway and functions) and of the table server for one request: "+
		"where others use the machine too, it tells more than the rate.", b.Rounds, b.Duration, b.warmup())
}

// ask makes a load on the API; a wrong answer fails the run.
func (b *bench) ask(ctx context.Context, s *shop, targets []string, encoding string, check func(http.Header, []byte) error) (*Outcome, error) {
	address := strings.TrimPrefix(s.Info.BaseURL, "http://")
	load := Load{Pace: b.pace(), Address: address, Targets: targets, Header: s.header(encoding), Check: check}
	outcome, err := load.Run(ctx)
	if err == nil && outcome.Failures > 0 {
		err = fmt.Errorf("%d of %d answers were wrong: %w", outcome.Failures, outcome.all, outcome.Failure)
	}
	return outcome, err
}

func (b *bench) pace() Pace {
	return Pace{Workers: connections, Warmup: b.warmup(), Duration: b.Duration}
}

// warmup is how long a load goes on before it counts.
func (b *bench) warmup() time.Duration { return min(time.Second, b.Duration/2) }

// best is the best of several rounds: what the machine does when it is not
// busy otherwise.
func (b *bench) best(name string, round func() (*Outcome, error)) (best *Outcome, err error) {
	for number := range b.Rounds {
		var outcome *Outcome
		if _, err := b.labelled(fmt.Sprintf("%s-%d", name, number+1), func() (err error) {
			outcome, err = round()
			return err
		}); err != nil {
			return nil, err
		}
		if best == nil || outcome.PerSecond() > best.PerSecond() {
			best = outcome
		}
	}
	return best, nil
}

// loadColumns head the cells of an outcome.
func loadColumns() []string {
	return []string{"a second", "p50", "p99", "answer", "CPU here + table"}
}

func (o *Outcome) cells() []string {
	cpu, n := "?", int64(max(1, o.all))
	if o.cpu.Own > 0 {
		cpu = fmt.Sprintf("%d + %d µs", o.cpu.Own.Microseconds()/n, o.cpu.Table.Microseconds()/n)
	}
	return []string{
		thousands(int(o.PerSecond())), milliseconds(o.latencies.Percentile(50)), milliseconds(o.latencies.Percentile(99)),
		kilobytes(float64(o.Bytes) / float64(max(1, o.Requests))), cpu,
	}
}

// checkPage takes a page that has records and says how many there are.
func checkPage(header http.Header, body []byte) error {
	if mediaType := header.Get("Content-Type"); mediaType != "application/json" {
		return fmt.Errorf("content type %q", mediaType)
	}
	if header.Get("Content-Encoding") != "" {
		return nil // the same page is checked without compression
	}
	if !bytes.HasPrefix(body, []byte(`{"data":[{"id":"`)) {
		return fmt.Errorf("a page without records: %.200s", body)
	}
	if _, after, found := bytes.Cut(body[max(0, len(body)-100):], []byte(`"total":`)); !found || after[0] < '1' || after[0] > '9' {
		return fmt.Errorf("a page without a total: …%s", body[max(0, len(body)-100):])
	}
	return nil
}

// checkItem takes a record.
func checkItem(_ http.Header, body []byte) error {
	if !bytes.HasPrefix(body, []byte(`{"id":"`)) || !bytes.HasSuffix(body, []byte("}")) {
		return fmt.Errorf("no record: %.200s", body)
	}
	return nil
}

// items is the section of records by id: what the service answers beside what
// the table itself does.
func (b *bench) items(ctx context.Context) error {
	s, err := b.stocked(ctx)
	if err != nil {
		return err
	}
	keys, err := s.productKeys(ctx)
	if err != nil {
		return err
	}
	alone, err := b.best("table", func() (*Outcome, error) { return b.readTable(ctx, s, keys) })
	if err != nil {
		return err
	}
	asked, err := b.best("item", func() (*Outcome, error) { return b.ask(ctx, s, s.itemTargets(), "identity", checkItem) })
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("Records by id, %s products, %d connections", thousands(s.products), connections), append(loadColumns(), "of the table's")...)
	t.note = b.howLoaded()
	t.add("the table alone: GetItem by the SDK, strongly consistent", "", append(alone.cells(), "")...)
	t.add("GET /api/products/{id}, each a strongly consistent read", fmt.Sprintf("≥ %s/s, the table's less 20%%", thousands(int(alone.PerSecond()*0.8))),
		append(asked.cells(), fmt.Sprintf("%.0f%%", 100*asked.PerSecond()/max(1, alone.PerSecond())))...)
	return nil
}

// itemTargets are the paths of some products, spread evenly.
func (s *shop) itemTargets() []string {
	targets := make([]string, min(sampleItems, s.products))
	for i := range targets {
		targets[i] = "/api/products/" + workload.ProductID(s.organization, i*s.products/len(targets)).String()
	}
	return targets
}

// readTable reads products from the table itself, strongly consistent, with
// as many workers as there are connections otherwise.
func (b *bench) readTable(ctx context.Context, s *shop, keys []key) (*Outcome, error) {
	return drive(ctx, b.pace(), func(_ context.Context, number int) (request, func(), error) {
		next := number * len(keys) / connections
		return func(ctx context.Context) (int, error, error) {
			key := keys[next%len(keys)]
			next++
			out, err := s.Table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Info.TableName, Key: key, ConsistentRead: aws.Bool(true)})
			if err != nil {
				return 0, nil, fmt.Errorf("read the table: %w", err)
			}
			doc, ok := out.Item["doc"].(*types.AttributeValueMemberS)
			if !ok {
				return 0, nil, fmt.Errorf("no product at %v", key)
			}
			return len(doc.Value), nil, nil
		}, func() {}, nil
	})
}

type key = map[string]types.AttributeValue

// productKeys finds the keys of some products in each of the partitions that
// they are spread over.
func (s *shop) productKeys(ctx context.Context) ([]key, error) {
	var keys []key
	for shard := range dynamo.Shards {
		partition := fmt.Sprintf("ORG#%s#PRODUCT#%x", s.organization, shard)
		page, err := s.Table.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.Info.TableName, KeyConditionExpression: aws.String("PK = :shard"), ProjectionExpression: aws.String("PK, SK"),
			ExpressionAttributeValues: key{":shard": &types.AttributeValueMemberS{Value: partition}}, Limit: aws.Int32(sampleItems / dynamo.Shards),
		})
		if err != nil {
			return nil, fmt.Errorf("find products in the table: %w", err)
		}
		keys = append(keys, page.Items...)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the table has no products of %s", s.organization)
	}
	return keys, nil
}
