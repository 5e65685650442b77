package index_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// givenFlags are the flags that the command line sets. It is asked before
// [bounded] sets any, since a flag that was set cannot be unset.
var givenFlags = sync.OnceValue(func() map[string]bool {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
})

// bounded sets how much a property is tried, unless the command line does:
// go test -run AsTheModel -rapid.checks 1000 -rapid.steps 60 takes its time.
func bounded(t *testing.T, checks, steps int) {
	t.Helper()
	given := givenFlags()
	for name, n := range map[string]string{
		"rapid.checks": strconv.Itoa(checks), "rapid.steps": strconv.Itoa(steps),
		"rapid.nofailfile": "true", // what runs at once does not fail the same way again
	} {
		if given[name] {
			continue
		}
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
}

// TestListsAnswerAsTheModel lets everything happen to the index that may:
// puts, deletes, records that move between months, replays, indexers and jobs
// that run at once, stop between any two of their requests or die there,
// stale reads and batches that are done by halves. No answer shows what never
// was, what is another organization's, or the same twice, none lacks what was
// indexed a moment ago; and once the stream is drained, every reader answers
// as a plain computation does, and the index equals the table.
func TestListsAnswerAsTheModel(t *testing.T) {
	bounded(t, 6, 25)
	client, name := dynamotest.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		m := newMachine(t, rt, newTrial(t, client, name, faults.Config{Seed: seed, Rates: faults.Rates{
			faults.Unprocessed: 0.3, faults.Throttle: 0.02, faults.InternalError: 0.01,
			faults.FalseError: 0.02, faults.LostAnswer: 0.02, faults.LostRequest: 0.01,
		}}))
		m.replica = newReplica(seed, 0.3, m.clock)
		defer m.trial.proxy.Close()
		rt.Repeat(map[string]func(*rapid.T){
			"write": m.write, "index": m.index, "work": m.work, "ask": m.ask, "poll": m.poll, "tick": m.tick,
			"bulk": m.bulk, "churn": m.churn, "at once": m.atOnce, "held": m.held, "overtaken": m.overtaken,
		})
		m.finish(rt)
	})
}

// machine drives a trial.
type machine struct {
	*trial
	readers []*reader
	pollers []*poller
	colds   int
	elapsed time.Duration

	logging sync.Mutex
	trail   []string // what was done
}

// logf notes what is done. Steps that run at once may not fail the same way
// again, so that a failure has to tell what led to it.
func (m *machine) logf(format string, args ...any) {
	m.logging.Lock()
	defer m.logging.Unlock()
	m.trail = append(m.trail, m.clock().Format("02T15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// note notes how a step of a process ended.
func (m *machine) note(process string, err error) {
	if err == nil {
		m.logf("  %s succeeded", process)
	} else {
		m.logf("  %s failed: %.200v", process, err)
	}
}

func (m *machine) failf(t *rapid.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nafter:\n  %s\ninjected: %s\nlogged: %q", fmt.Sprintf(format, args...), strings.Join(m.trail, "\n  "), m.proxy.Counts(), m.log.with(""))
}

func newMachine(t *testing.T, _ *rapid.T, tr *trial) *machine {
	t.Helper()
	m := &machine{trial: tr, readers: []*reader{tr.reader("large", 0), tr.reader("tiny", tinyMemory)}}
	for _, org := range tr.orgs {
		m.pollers = append(m.pollers, newPoller(org, "orders"), newPoller(org, "products"))
	}
	return m
}

// step is something that a process does. Its parts are drawn before it runs,
// so that several may run at once.
type step struct {
	what    string
	process string
	run     func() error // an error is a failure of the test
}

// months are the times of creation that records have; the last is now.
func (m *machine) months() []time.Time {
	return []time.Time{
		time.Date(2026, 9, 30, 23, 59, 59, 999e6, time.UTC), time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 10, 20, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), m.clock(),
	}
}

// target is a list of an organization that steps are about.
type target struct {
	org  value.ID
	list string
}

func (m *machine) drawTarget(t *rapid.T) target {
	return target{
		m.orgs[rapid.IntRange(0, 1).Draw(t, "org")],
		rapid.SampledFrom([]string{"orders", "orders", "orders", "products", "deletions"}).Draw(t, "list"),
	}
}

func (m *machine) write(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(t, "writes") {
		m.writeTo(t, m.drawTarget(t))
	}
}

// writeTo puts or deletes a record that the list is about.
func (m *machine) writeTo(t *rapid.T, to target) {
	id := modelID(rapid.IntRange(0, modelIDs-1).Draw(t, "id"))
	kind := commerce.KindOrder
	if to.list == "products" || to.list == "deletions" && rapid.Bool().Draw(t, "product") {
		kind = commerce.KindProduct
	}
	if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
		m.remove(to.org, kind, id)
		return
	}
	c := content{
		state: rapid.SampledFrom(modelStates).Draw(t, "state"), number: rapid.SampledFrom(modelWords).Draw(t, "number"),
		name: rapid.SampledFrom(append(modelWords, "")).Draw(t, "name"), ref: rapid.SampledFrom(append(modelWords, "")).Draw(t, "ref"),
		amount: int64(rapid.IntRange(-1, 6).Draw(t, "amount")), active: rapid.Bool().Draw(t, "active"),
		created: rapid.SampledFrom(m.months()).Draw(t, "created"), placed: rapid.SampledFrom(m.months()).Draw(t, "placed"),
	}
	if n := rapid.IntRange(0, len(modelSites)).Draw(t, "site"); n > 0 {
		c.site = modelSites[n-1]
	}
	m.put(to.org, kind, id, c)
}

// bulk puts products that are so large that their segment is not merged with
// small ones.
func (m *machine) bulk(t *rapid.T) {
	org := m.drawTarget(t).org
	for n := range modelIDs {
		m.put(org, commerce.KindProduct, modelID(n), content{number: modelWords[n%len(modelWords)], amount: 1, created: m.clock(), bulk: true})
	}
}

// drawCrash draws after how many more writes a process dies; none for less
// than 0.
func drawCrash(t *rapid.T) int {
	if rapid.IntRange(0, 3).Draw(t, "dies") > 0 {
		return -1
	}
	return rapid.IntRange(0, 6).Draw(t, "writes until death")
}

// mortal has a process die after so many writes, and start again.
func (m *machine) mortal(process string, crash int, run func()) {
	if crash >= 0 {
		m.process(process).crashAfter(crash)
		defer m.process(process).restart()
	}
	run()
}

func (m *machine) drawIndex(t *rapid.T, process string) step {
	shard, crash := rapid.IntRange(0, modelShards-1).Draw(t, "shard"), drawCrash(t)
	again, n := rapid.SampledFrom([]int{0, 0, 1, 7, 30}).Draw(t, "again"), rapid.IntRange(1, 20).Draw(t, "records")
	return step{fmt.Sprintf("%s takes %d of shard %d from %d back, dies %d", process, n, shard, again, crash), process, func() error {
		// Whatever fails is due again.
		m.mortal(process, crash, func() { m.note(process, m.trial.index(process, shard, again, n)) })
		return nil
	}}
}

func (m *machine) drawJob(t *rapid.T, process string, of target) step {
	org, list, crash := of.org, of.list, drawCrash(t)
	rebuild := rapid.IntRange(0, 5).Draw(t, "rebuild") == 0
	what := fmt.Sprintf("%s works on %s of %s, rebuilds %v, dies %d", process, list, org, rebuild, crash)
	return step{what, process, func() error {
		m.mortal(process, crash, func() {
			if rebuild {
				m.rebuild(process, org, list)
				return
			}
			for range 3 {
				more, err := m.job(process, org, list)
				m.note(process, err)
				if err != nil || !more {
					return
				}
			}
		})
		return nil
	}}
}

// rebuild is `commerce reindex`, interrupted if it does not end: another job
// may have the list, for as long as the clock stands.
func (m *machine) rebuild(process string, org value.ID, list string) {
	table := m.table(process)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	m.note(process, ops.Rebuild(ctx, table, m.compactor(table), index.Key{Org: org, List: listNamed(table, list).List}, func(int, int) {}))
}

func (m *machine) drawReader(t *rapid.T) *reader {
	n := rapid.IntRange(0, len(m.readers)).Draw(t, "reader")
	if n == len(m.readers) {
		m.colds++
		return m.reader(fmt.Sprint("cold-", m.colds%4), 0)
	}
	return m.readers[n]
}

func (m *machine) times() []int64 {
	times := []int64{}
	for _, at := range m.months() {
		times = append(times, at.UnixMilli(), at.UnixMilli()+1)
	}
	return append(times, m.clock().Add(-time.Hour).UnixMilli())
}

// drawAsk draws a question. Alone, nothing else happens meanwhile: then the
// pages of a list are those of its whole.
func (m *machine) drawAsk(t *rapid.T, of target, alone bool) step {
	r, org, list := m.drawReader(t), of.org, of.list
	q := r.lists[list].drawQuery(t, m.times())
	since := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 3 * time.Hour}).Draw(t, "since")
	return step{fmt.Sprintf("%s asks %s for %s", r.name, org, q.text), r.name, func() error {
		floor := m.promised()
		if alone {
			return m.consistent(r, org, list, q, since)
		}
		got, err := r.ask(org, list, q.all())
		if err != nil {
			return m.excuse(r, err)
		}
		return m.judge(org, list, q.all(), floor, got)
	}}
}

// excuse takes an error for one that a client may see.
func (m *machine) excuse(r *reader, err error) error {
	if unavailable(err) || r.name == "tiny" && hasCode(err, "list_too_large") {
		return nil
	}
	return fmt.Errorf("%s: %w", r.name, err)
}

// consistent asks for a page, for all pages, for what became visible since a
// moment, and for the whole, and holds them against each other. A view that
// had to begin again in between may have come further: then it asks again.
func (m *machine) consistent(r *reader, org value.ID, list string, q plainQuery, since time.Duration) error {
	var differ error
	for range 3 {
		floor := m.promised()
		page, err := r.ask(org, list, q)
		if err != nil {
			return m.excuse(r, err)
		}
		walk, err := m.walk(r, org, list, q)
		if err != nil {
			return m.excuse(r, err)
		}
		recent := everything()
		from := m.clock().Add(-since).UnixMilli()
		recent.query.Filter = columnar.VisibleWithin(from, 1<<63-1)
		visible, err := r.ask(org, list, recent)
		if err != nil {
			return m.excuse(r, err)
		}
		whole, err := r.ask(org, list, everything())
		if err != nil {
			return m.excuse(r, err)
		}
		if err := m.judge(org, list, everything(), floor, whole); err != nil {
			return err
		}
		if differ = m.compare(org, list, q, page, walk, visible, whole, from); differ == nil {
			return nil
		}
	}
	return differ
}

// walk asks for all pages of a query, by offset or by id.
func (m *machine) walk(r *reader, org value.ID, list string, q plainQuery) ([]string, error) {
	var hits []string
	q.query.Limit = max(q.query.Limit, 3)
	if q.query.AfterID == nil {
		q.query.Offset = 0
	}
	for range 100 {
		got, err := r.ask(org, list, q)
		if err != nil || len(got.Hits) == 0 {
			return hits, err
		}
		hits = append(hits, hitsIn(got)...)
		if q.query.AfterID != nil {
			q.query.AfterID = &got.Hits[len(got.Hits)-1].ID
		} else {
			q.query.Offset += len(got.Hits)
		}
	}
	return hits, errors.New("a walk does not end")
}

// compare holds a page, all pages and what became visible since a moment
// against the whole list.
func (m *machine) compare(org value.ID, list string, q plainQuery, page columnar.Result, walk []string, recent, whole columnar.Result, from int64) error {
	var rows []*plainRow
	var since []string
	for _, hit := range whole.Hits {
		for _, key := range m.keys(org, list) {
			if w := m.at(key, hit.Revision); w.stored != nil && key.id == value.ID(hit.ID) {
				rows = append(rows, w.shown(list == "deletions"))
			}
		}
		if hit.Visible >= from {
			since = append(since, hitsIn(columnar.Result{Hits: []columnar.Hit{hit}})...)
		}
	}
	total, want := q.answer(rows)
	if diff := gocmp.Diff(want, hitsIn(page)); diff != "" || total != page.Total {
		return fmt.Errorf("%s: total %d, want %d; page (-want +got):\n%s", q.text, page.Total, total, diff)
	}
	if q.query.AfterID == nil {
		q.query.Offset = 0
	}
	q.query.Limit = 10_000
	if _, want = q.answer(rows); len(want)+len(walk) > 0 {
		if diff := gocmp.Diff(want, walk); diff != "" {
			return fmt.Errorf("%s: all pages (-want +got):\n%s", q.text, diff)
		}
	}
	if got := hitsIn(recent); len(since)+len(got) > 0 {
		slices.Sort(since)
		slices.Sort(got)
		if diff := gocmp.Diff(since, got); diff != "" || recent.Total != len(got) {
			return fmt.Errorf("visible since %d: total %d (-want +got):\n%s", from, recent.Total, diff)
		}
	}
	return nil
}

func (m *machine) index(t *rapid.T) { m.alone(t, m.drawIndex(t, "writer")) }
func (m *machine) work(t *rapid.T)  { m.alone(t, m.drawJob(t, "worker", m.drawTarget(t))) }
func (m *machine) ask(t *rapid.T)   { m.alone(t, m.drawAsk(t, m.drawTarget(t), true)) }
func (m *machine) poll(t *rapid.T)  { m.alone(t, m.drawPoll(t)) }

func (m *machine) alone(t *rapid.T, s step) {
	t.Helper()
	m.logf("%s", s.what)
	if err := s.run(); err != nil {
		m.failf(t, "%s: %v", s.what, err)
	}
}

func (m *machine) drawStep(t *rapid.T, n int, of target) step {
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0, 1:
		return m.drawIndex(t, fmt.Sprint("writer-", n))
	case 2, 3:
		return m.drawJob(t, fmt.Sprint("worker-", n), of)
	case 4:
		return m.drawChurn(t, n, of)
	default:
		return m.drawAsk(t, of, false)
	}
}

// churn is what makes many segments of a list, and merges them.
func (m *machine) churn(t *rapid.T) { m.alone(t, m.drawChurn(t, 0, m.drawTarget(t))) }

// drawChurn draws rounds of a few writes, all of which are indexed, and a job.
func (m *machine) drawChurn(t *rapid.T, n int, of target) step {
	rounds, wait := rapid.IntRange(1, 9).Draw(t, "rounds"), rapid.SampledFrom([]time.Duration{0, 20 * time.Second, 70 * time.Second}).Draw(t, "wait")
	process := fmt.Sprint("churner-", n)
	return step{fmt.Sprintf("%s changes %s of %s %d times, %s apart", process, of.list, of.org, rounds, wait), process, func() error {
		for range rounds {
			for range rapid.IntRange(1, 3).Draw(t, "writes") {
				m.writeTo(t, of)
			}
			m.advance(wait)
			for shard := range modelShards {
				_ = m.trial.index(process, shard, 0, 25)
			}
			_, _ = m.job(process, of.org, of.list)
		}
		return nil
	}}
}

// atOnce runs several steps at the same time.
func (m *machine) atOnce(t *rapid.T) {
	var steps []step
	of := m.drawTarget(t)
	for n := range rapid.IntRange(2, 4).Draw(t, "steps") {
		s := m.drawStep(t, n, of)
		for strings.HasPrefix(s.process, "churner") { // it draws while it runs
			s = m.drawStep(t, n, of)
		}
		steps = append(steps, s)
	}
	failed := make([]error, len(steps))
	var group sync.WaitGroup
	for i, s := range steps {
		m.logf("at once: %s", s.what)
		group.Go(func() { failed[i] = s.run() })
	}
	group.Wait()
	for i, err := range failed {
		if err != nil {
			m.failf(t, "%s: %v", steps[i].what, err)
		}
	}
}

// held stops a process between two of its requests while others work on the
// same list and time goes by, and then lets it go on with what it knew.
func (m *machine) held(t *rapid.T) {
	of := m.drawTarget(t)
	slow := m.drawStep(t, 9, of)
	for strings.HasPrefix(slow.process, "churner") {
		slow = m.drawStep(t, 9, of)
	}
	requests := rapid.IntRange(0, 15).Draw(t, "requests")
	m.logf("held after %d requests: %s", requests, slow.what)
	hold := m.process(slow.process).hold(requests)
	defer hold.release()
	ended := make(chan error, 1)
	go func() { ended <- slow.run() }()
	select {
	case <-hold.reached:
		for n := range rapid.IntRange(1, 4).Draw(t, "others") {
			m.pass(t, slow)
			if other := m.drawStep(t, n, of); other.process != slow.process && !m.tooSlow(slow, other) {
				m.alone(t, other)
			}
		}
		hold.release()
		if err := <-ended; err != nil {
			m.failf(t, "%s: %v", slow.what, err)
		}
		m.logf("went on: %s", slow.what)
	case err := <-ended:
		hold.release()
		if err != nil {
			m.failf(t, "%s: %v", slow.what, err)
		}
	}
}

// overtaken holds a job until others have long done its work, and changed the
// list more than once.
func (m *machine) overtaken(t *rapid.T) {
	of := m.drawTarget(t)
	slow := m.drawJob(t, "worker-9", of)
	requests := rapid.IntRange(1, 15).Draw(t, "requests")
	m.logf("held after %d requests: %s", requests, slow.what)
	hold := m.process(slow.process).hold(requests)
	defer hold.release()
	ended := make(chan error, 1)
	go func() { ended <- slow.run() }()
	select {
	case <-hold.reached:
		m.advance(2 * time.Minute)
		m.alone(t, m.drawChurn(t, 1, of))
		hold.release()
		<-ended
	case <-ended:
	}
	m.alone(t, m.drawAsk(t, of, true))
}

// An indexer gives its entry up within seconds: no minutes pass while one is
// held.
func (m *machine) tooSlow(held, other step) bool {
	return strings.HasPrefix(held.process, "writer") && strings.HasPrefix(other.process, "churner") && !strings.Contains(other.what, " 0s apart")
}

// pass lets time go by while a process is held.
func (m *machine) pass(t *rapid.T, slow step) {
	times := []time.Duration{0, 100 * time.Millisecond, 2 * time.Second}
	if !strings.HasPrefix(slow.process, "writer") {
		times = append(times, 90*time.Second, 3*time.Minute)
	}
	m.advance(rapid.SampledFrom(times).Draw(t, "passed"))
}

func (m *machine) tick(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{
		100 * time.Millisecond, time.Second, 1500 * time.Millisecond, 5 * time.Second, 70 * time.Second,
		11 * time.Minute, 2 * time.Hour, 26 * time.Hour, 3 * 24 * time.Hour,
	}).Draw(t, "time")
	if d > time.Hour {
		// The stream drops what is a day old, and due jobs run within minutes.
		m.drain(t)
		m.settle(t)
	}
	if m.elapsed += d; m.elapsed > 60*24*time.Hour {
		return
	}
	m.logf("%s go by", d)
	m.advance(d)
}

// drain has the stream taken to its end by an indexer that meets no faults.
func (m *machine) drain(t *rapid.T) {
	t.Helper()
	for shard := range modelShards {
		for range 200 {
			m.mu.Lock()
			left := len(m.shards[shard]) - m.done[shard]
			m.mu.Unlock()
			if left == 0 {
				break
			}
			if err := m.trial.index("drain", shard, 0, 25); err != nil {
				m.failf(t, "drain shard %d: %v", shard, err)
			}
		}
	}
}

// settle does all jobs that there are, without faults.
func (m *machine) settle(t *rapid.T) {
	t.Helper()
	m.advance(2 * time.Minute) // what a dead worker holds is free again
	for _, org := range m.orgs {
		for _, list := range m.names {
			more, err := true, error(nil)
			for tries := 0; more; tries++ {
				if more, err = m.job("settle", org, list); err != nil {
					m.failf(t, "a job of %s: %v", list, err)
				}
				if tries == 100 {
					m.failf(t, "the jobs of %s do not end", list)
				}
			}
		}
	}
}

// finish lets the stream drain and time go by, and then wants every answer to
// be right, before and after all jobs are done.
func (m *machine) finish(t *rapid.T) {
	t.Helper()
	m.proxy.Off()
	m.replica.disable()
	m.advance(2 * time.Minute)
	m.poll(t)
	m.drain(t)
	m.advance(views.Freshness + staleness)
	m.exact(t, "drained")
	m.settle(t)
	m.advance(2 * time.Hour)
	m.settle(t)
	m.exact(t, "settled")
	for _, p := range m.pollers {
		if err := p.poll([]*reader{m.readers[0]}); err != nil {
			m.failf(t, "the last poll of %s: %v", p.list, err)
		}
		if diff := p.diff(m.trial); diff != "" {
			m.failf(t, "a client's copy of %s of %s (-table +copy):\n%s", p.list, p.org, diff)
		}
	}
	for i, org := range m.orgs {
		for _, list := range m.names[:len(m.names)-i] { // deletions take most reads, so one organization's will do
			differences, err := ops.Verify(context.Background(), m.direct, org, listNamed(m.direct, list).List, m.clock())
			if err != nil || len(differences) > 0 {
				m.failf(t, "index and table of %s of %s: %v, %v", list, org, differences, err)
			}
		}
	}
	if damaged := m.log.with("rebuilt"); len(damaged) > 0 {
		m.failf(t, "a sound index was taken for a damaged one: %q", damaged)
	}
}

// exact asks every reader everything and some things, and wants the answers of
// a plain computation. The reader with the least memory may have to wait for jobs.
func (m *machine) exact(t *rapid.T, when string) {
	t.Helper()
	for _, r := range append(m.readers, m.reader("last", 0)) {
		for _, org := range m.orgs {
			for _, list := range m.names {
				rows := m.rows(org, list)
				queries := []plainQuery{}
				for range rapid.IntRange(1, 3).Draw(t, "queries") {
					queries = append(queries, r.lists[list].drawQuery(t, m.times()))
				}
				for _, q := range append(queries, everything()) {
					got, err := r.ask(org, list, q)
					if r.name == "tiny" && (when != "settled" && unavailable(err) || hasCode(err, "list_too_large")) {
						continue // a tail that jobs have not shortened may be too long for it, as the list may be
					}
					if err != nil {
						m.failf(t, "%s: %s asks %s for %s: %v", when, r.name, org, q.text, err)
					}
					total, want := q.answer(rows)
					if diff := gocmp.Diff(want, hitsIn(got)); diff != "" || total != got.Total {
						m.failf(t, "%s: %s asks %s for %s: total %d, want %d (-want +got):\n%s", when, r.name, list, q.text, got.Total, total, diff)
					}
				}
			}
		}
	}
}
