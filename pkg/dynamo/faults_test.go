package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// faultyTable returns a table behind a proxy that fails at the given rates.
func faultyTable(t *testing.T, rates faults.Rates) (*dynamo.Table, *faults.Proxy) {
	t.Helper()
	client, name := dynamotest.Client(t)
	return behindProxy(t, client, name, rates, time.Now)
}

func behindProxy(t *testing.T, client *dynamodb.Client, name string, rates faults.Rates, now func() time.Time) (*dynamo.Table, *faults.Proxy) {
	t.Helper()
	proxy, err := faults.New(*client.Options().BaseEndpoint, faults.Config{Rates: rates})
	must(t, err)
	must(t, proxy.Start("127.0.0.1:0"))
	t.Cleanup(func() { proxy.Close() })
	endpoint := proxy.Endpoint()
	return dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Retryer = &endpoint, promptRetryer()
	}), name, now), proxy
}

// broken are the ways in which a call fails or only seems to.
var broken = []faults.Fault{faults.LostRequest, faults.LostAnswer, faults.FalseError, faults.Throttle, faults.InternalError}

// Each call appends to all of the tails. An entry whose answer was lost may be there twice.
func TestTailsStayWholeWhateverFails(t *testing.T) {
	table, proxy := faultyTable(t, faults.Every(0.08, append(broken, faults.Unprocessed)...))
	orgs := []value.ID{value.NewID(), value.NewID(), value.NewID()}
	var mu sync.Mutex
	told, failed := map[value.ID]map[uint64]string{}, 0
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 10 {
				body := fmt.Sprintf("%d-%d", writer, i)
				var appends []index.Append
				for _, org := range orgs {
					appends = append(appends, entry(org, body))
				}
				written, err := table.AppendTails(t.Context(), appends...)
				mu.Lock()
				if err != nil {
					failed++
				}
				for n, a := range written {
					if told[orgs[n]] == nil {
						told[orgs[n]] = map[uint64]string{}
					}
					told[orgs[n]][a.Sequence] = body
					if a.Sum != 3*a.Sequence || (a.Previous == 0) != (a.Sequence == 1) || a.Previous > a.At {
						t.Errorf("append %s: %+v, want the sum %d and a time before, of all but the first", body, a, 3*a.Sequence)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	proxy.Off()
	for _, org := range orgs {
		before := value.Time(0)
		for i, e := range readTail(t, table, org, 0) {
			if e.At <= before {
				t.Errorf("entry %d is from %s, the one in front of it from %s", e.Sequence, e.At, before)
			}
			before = e.At
			if was := told[org][e.Sequence]; e.Sequence != uint64(i+1) || was != "" && was != string(e.Body) {
				t.Errorf("entry %d: the sequence %d with %q, told %q", i+1, e.Sequence, e.Body, was)
			}
			delete(told[org], e.Sequence)
		}
		if len(told[org]) > 0 {
			t.Errorf("appended and not there: %v", told[org])
		}
	}
	if c := proxy.Counts(); failed == 80 || c.Of(faults.LostAnswer) == 0 || c.Of(faults.Unprocessed) == 0 {
		t.Errorf("%d failed\n%s", failed, c)
	}
}

// Each version's body names who has put it and all before, so that the last
// one tells whose writes were made.
func TestManifestIsWhatItsWritersWereToldWhateverFails(t *testing.T) {
	table, proxy := faultyTable(t, faults.Every(0.08, broken...))
	org := value.NewID()
	var mu sync.Mutex
	put := map[string]bool{} // as its writer was told
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := range 12 {
				name := fmt.Sprintf("%d-%d", writer, i)
				m, err := table.Manifest(t.Context(), org, list, liveManifest)
				if err != nil {
					continue
				}
				if m == nil {
					m = &index.StoredManifest{}
				}
				m.Version, m.Body = m.Version+1, append(m.Body, name+" "...)
				done, err := table.PutManifest(t.Context(), org, list, liveManifest, *m)
				mu.Lock()
				put[name] = done && err == nil
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	proxy.Off()
	m, err := table.Manifest(t.Context(), org, list, liveManifest)
	must(t, err)
	made := strings.Fields(string(m.Body))
	if m.Version != uint64(len(made)) {
		t.Errorf("version %d after the writes %v", m.Version, made)
	}
	for name, told := range put {
		if told && !slices.Contains(made, name) {
			t.Errorf("%s was told that its write was made, and it was not", name)
		}
	}
	if proxy.Counts().Of(faults.LostAnswer)+proxy.Counts().Of(faults.FalseError) == 0 {
		t.Errorf("no answer was lost:\n%s", proxy.Counts())
	}
}
