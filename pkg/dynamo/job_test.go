package dynamo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// jobs is a list's job under a clock that the test moves.
type jobs struct {
	*dynamo.Table
	t      *testing.T
	client *dynamodb.Client
	org    value.ID
	now    *atomic.Int64
}

var jobStart = value.TimeOf(time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC))

func newJobs(t *testing.T) *jobs {
	t.Helper()
	client, name := dynamotest.Client(t)
	j := &jobs{t: t, client: client, org: value.NewID(), now: &atomic.Int64{}}
	j.now.Store(int64(jobStart))
	j.Table = dynamo.New(client, name, j.clock)
	return j
}

func (j *jobs) clock() time.Time { return value.Time(j.now.Load()).Std() }

func (j *jobs) ask(due time.Duration) {
	j.t.Helper()
	if err := j.RequestJob(j.t.Context(), j.org, list, jobStart.Add(due)); err != nil {
		j.t.Errorf("ask for %s: %v", due, err)
	}
}

func (j *jobs) take(until time.Duration) *index.Job {
	j.t.Helper()
	taken, err := j.TakeJob(j.t.Context(), j.org, list, jobStart.Add(until))
	if err != nil {
		j.t.Errorf("take until %s: %v", until, err)
	}
	return taken
}

func (j *jobs) end(taken *index.Job, next *time.Duration) {
	j.t.Helper()
	var at *value.Time
	if next != nil {
		at = ptr(jobStart.Add(*next))
	}
	if _, err := j.EndJob(j.t.Context(), taken, at); err != nil {
		j.t.Errorf("end: %v", err)
	}
}

// due lists the jobs of all shards that are due so long after the start.
func (j *jobs) due(after time.Duration) (found []index.Job) {
	j.t.Helper()
	for shard := range dynamo.Shards {
		some, err := j.DueJobs(j.t.Context(), shard, jobStart.Add(after), 100)
		if err != nil {
			j.t.Error(err)
		}
		found = append(found, some...)
	}
	return found
}

func (j *jobs) checkDue(name string, after time.Duration, want bool) {
	j.t.Helper()
	found := j.due(after)
	if (len(found) == 1) != want || want && found[0] != (index.Job{OrganizationID: j.org, List: list}) {
		j.t.Errorf("%s: due after %s: %+v, want it %t", name, after, found, want)
	}
}

// state describes the stored job, with times from the start and without what
// is random.
func (j *jobs) state() string {
	j.t.Helper()
	out, err := j.client.GetItem(j.t.Context(), &dynamodb.GetItemInput{TableName: ptr(j.Name()), Key: map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "IDX#" + j.org.String() + "#" + list},
		"SK": &types.AttributeValueMemberS{Value: "JOB"},
	}})
	if err != nil {
		j.t.Fatal(err)
	}
	if out.Item == nil {
		return "none"
	}
	at := func(name string) string {
		text, ok := out.Item[name].(*types.AttributeValueMemberS)
		if !ok {
			return "-"
		}
		first, _, _ := strings.Cut(text.Value, "#")
		ms, err := value.ParseTime(first)
		if err != nil {
			j.t.Fatal(err)
		}
		return time.Duration((ms - jobStart) * 1e6).String()
	}
	_, held := out.Item["holder"]
	return fmt.Sprintf("asked %s, due %s, held %t until %s, marked %s",
		out.Item["asked"].(*types.AttributeValueMemberN).Value, at("due"), held, at("lease"), at("GSI1SK"))
}

func (j *jobs) checkState(name, want string) {
	j.t.Helper()
	if got := j.state(); got != want {
		j.t.Errorf("%s: got %s; want %s", name, got, want)
	}
}

func TestJobIsDueAtTheEarliestTimeAskedFor(t *testing.T) {
	j := newJobs(t)
	j.checkDue("nothing asked", 24*time.Hour, false)
	if taken := j.take(time.Minute); taken != nil {
		t.Errorf("took %+v, which nobody asked for", taken)
	}
	for _, due := range []time.Duration{2 * time.Hour, time.Hour, 3 * time.Hour} {
		j.ask(due)
	}
	j.checkState("asked", "asked 3, due 1h0m0s, held false until -, marked 1h0m0s")
	j.checkDue("before", time.Hour-time.Millisecond, false)
	j.checkDue("at its time", time.Hour, true)
	j.now.Store(int64(jobStart.Add(time.Hour - time.Millisecond)))
	if taken := j.take(2 * time.Hour); taken != nil {
		t.Errorf("took %+v before its time", taken)
	}
	j.now.Store(int64(jobStart.Add(time.Hour)))
	taken := j.take(2 * time.Hour)
	if taken == nil || taken.Requests != 3 || taken.OrganizationID != j.org || taken.List != list {
		t.Fatalf("took %+v, want the job asked for 3 times", taken)
	}
	j.checkState("taken", "asked 3, due -, held true until 2h0m0s, marked 1h0m0s")
}

func TestJobThatIsTakenIsNobodyElses(t *testing.T) {
	j := newJobs(t)
	j.ask(0)
	first := j.take(time.Minute)
	j.ask(0)
	j.checkState("asked for while it is taken", "asked 2, due 0s, held true until 1m0s, marked 0s")
	j.now.Store(int64(jobStart.Add(time.Minute - time.Millisecond)))
	if second := j.take(2 * time.Minute); second != nil {
		t.Errorf("took %+v, which another has", second)
	}
	j.now.Store(int64(jobStart.Add(time.Minute)))
	j.checkDue("left", time.Minute, true)
	second := j.take(2 * time.Minute)
	if second == nil || second.Requests != 2 {
		t.Fatalf("took %+v, want what a holder that died has left", second)
	}
	j.end(first, nil)
	j.end(first, ptr(time.Duration(0)))
	j.checkState("the first holder ends late", "asked 2, due -, held true until 2m0s, marked 0s")
	j.end(second, nil)
	j.checkState("the second holder ends", "none")
	j.end(second, ptr(time.Duration(0)))
	j.checkState("it ends twice", "none")
}

func TestJobRunsAgainWhereItIsWanted(t *testing.T) {
	hour := time.Hour
	for _, row := range []struct {
		name  string
		asked []time.Duration // meanwhile
		next  *time.Duration
		want  string
	}{
		{"done", nil, nil, "none"},
		{"more to do", nil, &hour, "asked 1, due 1h0m0s, held false until -, marked 1h0m0s"},
		{"asked for meanwhile", []time.Duration{2 * hour, 3 * hour}, nil, "asked 3, due 2h0m0s, held false until -, marked 2h0m0s"},
		{"asked for earlier", []time.Duration{0}, &hour, "asked 2, due 0s, held false until -, marked -1m0s"},
		{"asked for later", []time.Duration{2 * hour}, &hour, "asked 2, due 1h0m0s, held false until -, marked 1h0m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := newJobs(t)
			j.ask(-time.Minute)
			taken := j.take(time.Minute)
			for _, due := range row.asked {
				j.ask(due)
			}
			j.end(taken, row.next)
			j.checkState(row.name, row.want)
		})
	}
}

func TestJobsOfOthersStayApart(t *testing.T) {
	j := newJobs(t)
	j.ask(0)
	other := value.NewID()
	if taken, err := j.TakeJob(t.Context(), other, list, jobStart.Add(time.Minute)); taken != nil || err != nil {
		t.Errorf("another organization took %+v, %v", taken, err)
	}
	if taken, err := j.TakeJob(t.Context(), j.org, "order", jobStart.Add(time.Minute)); taken != nil || err != nil {
		t.Errorf("for another list %+v was taken, %v", taken, err)
	}
	taken := j.take(time.Minute)
	foreign := *taken
	foreign.OrganizationID = other
	j.end(&foreign, nil)
	j.checkState("another organization ends it", "asked 1, due -, held true until 1m0s, marked 0s")
}

func TestDueJobsComeLongestDueFirst(t *testing.T) {
	j := newJobs(t)
	const lists = 60
	for i := range lists {
		must(t, j.RequestJob(t.Context(), j.org, fmt.Sprintf("list%d", i), jobStart.Add(time.Duration(lists-i)*time.Second)))
	}
	seen := 0
	for shard := range dynamo.Shards {
		all, err := j.DueJobs(t.Context(), shard, jobStart.Add(time.Hour), 100)
		must(t, err)
		seen += len(all)
		number := func(d index.Job) (n int) {
			if _, err := fmt.Sscanf(d.List, "list%d", &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if !slices.IsSortedFunc(all, func(a, b index.Job) int { return number(b) - number(a) }) {
			t.Errorf("shard %d: %+v", shard, all)
		}
		for limit := range all {
			some, err := j.DueJobs(t.Context(), shard, jobStart.Add(time.Hour), limit+1)
			if err != nil || !slices.Equal(some, all[:limit+1]) {
				t.Errorf("shard %d, limit %d: %+v, %v, want %+v", shard, limit+1, some, err, all[:limit+1])
			}
		}
	}
	if seen != lists {
		t.Errorf("%d jobs are due, want %d", seen, lists)
	}
}

// jobStates are ways to a stored job; they return who holds it.
var jobStates = map[string]func(*jobs) *index.Job{
	"none":        func(*jobs) *index.Job { return nil },
	"asked":       func(j *jobs) *index.Job { j.ask(-time.Minute); return nil },
	"asked later": func(j *jobs) *index.Job { j.ask(time.Hour); return nil },
	"taken":       func(j *jobs) *index.Job { j.ask(0); return j.take(time.Minute) },
	"taken and asked": func(j *jobs) *index.Job {
		j.ask(0)
		taken := j.take(time.Minute)
		j.ask(2 * time.Second)
		return taken
	},
	"left":           func(j *jobs) *index.Job { j.ask(0); return j.take(-time.Second) },
	"left and asked": func(j *jobs) *index.Job { j.ask(0); taken := j.take(-time.Second); j.ask(0); return taken },
}

// jobSteps are what somebody may do with a job; they return what came of it.
var jobSteps = map[string]func(*jobs, *index.Job) string{
	"ask":       func(j *jobs, _ *index.Job) string { j.ask(0); return "" },
	"ask later": func(j *jobs, _ *index.Job) string { j.ask(2 * time.Hour); return "" },
	"take": func(j *jobs, _ *index.Job) string {
		taken := j.take(2 * time.Minute)
		if taken == nil {
			return "not taken"
		}
		return fmt.Sprintf("taken, asked %d", taken.Requests)
	},
	"end": func(j *jobs, held *index.Job) string { j.end(held, nil); return "" },
	"end, again later": func(j *jobs, held *index.Job) string {
		j.end(held, ptr(time.Hour))
		return ""
	},
}

// sequence does steps one after another, from a state on, and tells what came
// of it and how the job stands then.
func sequence(j *jobs, state string, steps ...string) (results []string, stands string) {
	j.org = value.NewID()
	held := jobStates[state](j)
	for _, step := range steps {
		results = append(results, jobSteps[step](j, held))
	}
	return results, j.state()
}

// possible reports whether a holder can do the step: only one that has taken
// the job ends it.
func possible(state, step string) bool {
	return !strings.HasPrefix(step, "end") || strings.HasPrefix(state, "taken") || strings.HasPrefix(state, "left")
}

// Whatever somebody does between another's reading and writing of a job, both
// come out as if they had acted one after the other. The same when what the first
// has written is answered to nobody, and others act before it is written again;
// only an ask may count twice then.
func TestStepsWithAJobDoNotMix(t *testing.T) {
	j := newJobs(t)
	for state := range jobStates {
		for first := range jobSteps {
			for second := range jobSteps {
				if !possible(state, first) || !possible(state, second) {
					continue
				}
				for _, lost := range []bool{false, true} {
					j.checkSteps(state, first, second, lost)
				}
			}
		}
	}
}

// checkSteps has the second step done before the first writes, or, when its answer
// is lost, before it writes again.
func (j *jobs) checkSteps(state, first, second string, lost bool) {
	j.t.Helper()
	order := []string{second, first}
	if lost {
		order = []string{first, second}
	}
	wantResults, want := sequence(j, state, order...)

	j.org = value.NewID()
	held := jobStates[state](j)
	m := &meddling{operations: []string{"PutItem", "DeleteItem"}, behind: lost}
	meddled := &jobs{Table: m.table(j.client, j.Name(), j.clock), t: j.t, client: j.client, org: j.org, now: j.now}
	results := map[string]string{}
	m.act = func() { results["second"] = jobSteps[second](j, held) }
	m.armed.Store(true)
	results["first"] = jobSteps[first](meddled, held)
	if m.armed.Load() {
		return // the first writes nothing
	}
	gotResults := []string{results["second"], results["first"]}
	if lost {
		slices.Reverse(gotResults)
	}
	got := j.state()
	if lost && got != want && strings.HasPrefix(first, "ask") {
		_, want = sequence(j, state, first, second, first)
	}
	if got != want || !slices.Equal(gotResults, wantResults) {
		j.t.Errorf("%s at the same time as %s, whose answer is lost: %t, %s:\ngot  %q, %s\nwant %q, %s", second, first, lost, state, gotResults, got, wantResults, want)
	}
}

// Work is noted and then asked for; who takes the job does what is noted then,
// unless it dies. Whoever acts at the same time and how long a holder takes,
// all of the work is done in the end.
func TestWorkThatIsAskedForIsDone(t *testing.T) {
	j := newJobs(t)
	var mu sync.Mutex
	open := map[int]bool{}
	var wg, askers sync.WaitGroup
	for asker := range 3 {
		askers.Add(1)
		wg.Go(func() {
			defer askers.Done()
			for i := range 12 {
				mu.Lock()
				open[100*asker+i] = true
				mu.Unlock()
				if err := j.RequestJob(t.Context(), j.org, list, value.Time(j.now.Load())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work := func(random *rand.Rand) bool {
		taken, err := j.TakeJob(t.Context(), j.org, list, value.Time(j.now.Load()+20))
		if err != nil {
			t.Error(err)
		}
		if taken == nil {
			j.now.Add(3)
			return false
		}
		mu.Lock()
		var noted []int
		for n := range open {
			noted = append(noted, n)
		}
		mu.Unlock()
		j.now.Add(random.Int64N(40)) // perhaps longer than it has the job
		if random.IntN(4) == 0 {
			return true // it dies
		}
		var next *value.Time
		if len(noted) > 5 {
			noted, next = noted[:5], ptr(value.Time(j.now.Load()))
		}
		mu.Lock()
		for _, n := range noted {
			delete(open, n)
		}
		mu.Unlock()
		if _, err := j.EndJob(t.Context(), taken, next); err != nil {
			t.Error(err)
		}
		return true
	}
	asked := make(chan struct{})
	go func() { askers.Wait(); close(asked) }()
	for worker := range 3 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for {
				did := work(random)
				select {
				case <-asked:
					if !did && len(j.due(24*time.Hour)) == 0 {
						return
					}
				default:
				}
			}
		})
	}
	wg.Wait()
	if len(open) > 0 {
		t.Errorf("left undone: %v", open)
	}
	j.checkState("all is done", "none")
}
