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

func TestTailStaysWholeWhateverFails(t *testing.T) {
	table, proxy := faultyTable(t, faults.Every(0.08, broken...))
	org := value.NewID()
	var mu sync.Mutex
	told, failed := map[uint64]string{}, map[string]bool{}
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 10 {
				body := fmt.Sprintf("%d-%d", writer, i)
				a, err := table.AppendTail(t.Context(), org, list, fixed([]byte(body)))
				mu.Lock()
				if err != nil {
					failed[body] = true
				} else {
					told[a.Sequence] = body
				}
				mu.Unlock()
				if err == nil && (a.Sum != 3*a.Sequence || (a.Previous == 0) != (a.Sequence == 1) || a.Previous > a.At) {
					t.Errorf("append %s: %+v, want the sum %d and a time before, of all but the first", body, a, 3*a.Sequence)
				}
			}
		})
	}
	wg.Wait()
	proxy.Off()
	there := map[string]bool{}
	before := value.Time(0)
	for i, e := range readTail(t, table, org, 0) {
		body := string(e.Body)
		if e.At <= before {
			t.Errorf("entry %d is from %s, the one in front of it from %s", e.Sequence, e.At, before)
		}
		before = e.At
		if e.Sequence != uint64(i+1) || there[body] || told[e.Sequence] != body && !failed[body] {
			t.Errorf("entry %d: the sequence %d with %q, told %q; twice: %t", i+1, e.Sequence, body, told[e.Sequence], there[body])
		}
		there[body] = true
		delete(told, e.Sequence)
	}
	if len(told) > 0 || len(failed) == 80 || proxy.Counts().Of(faults.LostAnswer) == 0 {
		t.Errorf("appended and not there: %v; %d failed\n%s", told, len(failed), proxy.Counts())
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
