package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// connections is how many clients ask at a time.
const connections = 16

// searches are requests with a filter, a search, an order and the total: for
// things, and where there are many products each second one of a material,
// and the first three pages of each.
func searches(products int) (targets []string) {
	many := products >= 50_000
	pages := 1
	if many {
		pages = 3
	}
	for i, thing := range strings.Fields(things) {
		words := thing
		if many && i%2 == 1 {
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

// measureLists is the section of lists over HTTP.
func measureLists(ctx context.Context, b *bench) error {
	s, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	t := b.table(fmt.Sprintf("Lists over HTTP, %s products, %d connections, pages of 20", thousands(s.products), connections), loadColumns()...)
	t.note = b.howLoaded()
	for _, row := range []struct {
		name     string
		about    string
		targets  []string
		encoding string
		rate     float64
		p99      time.Duration
	}{
		{"search", "filter, search, order, total", searches(s.products), "identity", 1500, 40 * time.Millisecond},
		{"search-gzip", "the same, compressed", searches(s.products), "gzip", 0, 0},
		{"newest", "no filter, newest first", []string{"/api/products"}, "identity", 2000, 0},
		{"newest-gzip", "the same, compressed", []string{"/api/products"}, "gzip", 0, 0},
	} {
		outcome, err := b.best(row.name, func() (*Outcome, error) { return b.ask(ctx, s, row.targets, row.encoding, checkPage) })
		if err != nil {
			return err
		}
		t.add(row.about, rateTarget(row.rate, row.p99), rateOf(outcome)...)
	}
	return nil
}

// howLoaded says how figures of loads came to be.
func (b *bench) howLoaded() string {
	return fmt.Sprintf("The best of %d rounds of %s, each after %s of warm-up; the client is in this process and shares the processors. "+
		"CPU is the time of this process (client, gateway and functions) and of the table server for one request: "+
		"where others use the machine too, it tells more than the rate.", b.cfg.Rounds, b.cfg.Duration, b.warmup())
}

// ask makes a load on the API; an answer that is not what it has to be fails
// the run.
func (b *bench) ask(ctx context.Context, s *service, targets []string, encoding string, check func(http.Header, []byte) error) (*Outcome, error) {
	load := Load{Pace: b.pace(), Address: hostOf(s.info.BaseURL), Targets: targets, Header: s.header(encoding), Check: check}
	outcome, err := load.Run(ctx)
	if err == nil && outcome.Failures > 0 {
		err = fmt.Errorf("%d of %d answers were wrong: %w", outcome.Failures, outcome.all, outcome.Failure)
	}
	return outcome, err
}

func (b *bench) pace() Pace {
	return Pace{Workers: connections, Warmup: b.warmup(), Duration: b.cfg.Duration}
}

// warmup is how long a load goes on before it counts.
func (b *bench) warmup() time.Duration { return min(time.Second, b.cfg.Duration/2) }

// best is the best of several rounds: what the machine does when it is not
// busy otherwise.
func (b *bench) best(name string, round func() (*Outcome, error)) (best *Outcome, err error) {
	for number := range b.cfg.Rounds {
		var outcome *Outcome
		err := b.profiled(fmt.Sprintf("%s-%d", name, number+1), func() (err error) {
			outcome, err = round()
			return err
		})
		if err != nil {
			return nil, err
		}
		best = better(best, outcome)
	}
	return best, nil
}

func better(a, b *Outcome) *Outcome {
	if a == nil || b.PerSecond() > a.PerSecond() {
		return b
	}
	return a
}

// loadColumns head what rateOf tells.
func loadColumns() []string {
	return []string{"a second", "p50", "p99", "answer", "CPU here + table"}
}

func rateOf(o *Outcome) []string {
	return []string{
		thousands(int(o.PerSecond())), milliseconds(o.Percentile(50)), milliseconds(o.Percentile(99)),
		kilobytes(float64(o.Bytes) / float64(max(1, o.Requests))), o.processor.per(o.all),
	}
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
