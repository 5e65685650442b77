//go:build linux

package index_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/local/processes"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// limitedAPI is the api function in one process, whose writable memory the
// kernel bounds.
type limitedAPI struct {
	fleet *processes.Fleet
	logs  string // the file of its output
}

// newLimitedAPI starts the function with so much memory in MB, of which it is told
// to be in, and another bound that the kernel holds. Beside the heap, which the
// collector bounds, the kernel counts address space that the runtime has reserved
// in whole arenas of 64 MB.
func newLimitedAPI(t testing.TB, table string, endpoint *string, memoryMB, kernelMB int) *limitedAPI {
	t.Helper()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("prlimit of util-linux is not installed")
	}
	dir := t.TempDir()
	binaries, err := processes.Binaries(t.Context(), filepath.Join("..", ".."), dir, []string{"api"})
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --data=%d --core=0 -- %s\n", prlimit, kernelMB<<20, binaries["api"])
	limited := filepath.Join(dir, "limited")
	if err := os.WriteFile(limited, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := maps.Clone(dynamotest.Model(t).Functions["api"].Environment)
	maps.Copy(environment, map[string]string{
		"TABLE_NAME": table, "AWS_ENDPOINT_URL_DYNAMODB": *endpoint, "AWS_LAMBDA_LOG_FORMAT": "JSON",
	})
	logs, err := os.Create(filepath.Join(dir, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	a := &limitedAPI{logs: logs.Name()}
	a.fleet, err = processes.New([]processes.Function{
		{Name: "api", Binary: limited, Environment: environment, Timeout: time.Minute, MemoryMB: memoryMB, Instances: 1},
	}, processes.Config{Logs: logs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.fleet.Close()
		_ = logs.Close()
		if t.Failed() {
			t.Logf("output of api:\n%.4000s", a.output(t))
		}
	})
	return a
}

// output is what the function has written so far.
func (a *limitedAPI) output(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(a.logs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tenants are organizations that have as many orders, the same ones.
type tenants struct{ count, orders int }

// newTenants returns the function beside organizations, by how many orders each
// has: a list of them all, and the records that the pages show.
func newTenants(t testing.TB, memoryMB, kernelMB int, pages []map[string]string, stored ...tenants) (*limitedAPI, map[value.ID]int) {
	t.Helper()
	client, table := dynamotest.Client(t)
	store := dynamo.New(client, table, time.Now)
	all := map[value.ID]int{}
	for _, one := range stored {
		orgs := make([]value.ID, one.count)
		for i := range orgs {
			orgs[i] = value.NewID()
			all[orgs[i]] = one.orders
		}
		p := &meteredHarness{now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), years: 3, lists: index.NewLists(store, 1)}
		sealedMonths(t, p, store, one.orders, orgs...)
		storePages(t, store, p.lists.Records[commerce.KindOrder], orgs, pages)
	}
	return newLimitedAPI(t, table, client.Options().BaseEndpoint, memoryMB, kernelMB), all
}

// storePages stores the records of the pages for organizations with one list.
func storePages(t testing.TB, store *dynamo.Table, list *index.List, orgs []value.ID, pages []map[string]string) {
	t.Helper()
	cache := views.NewCache(store, views.Config{MaxBytes: 8 << 30})
	for _, parameters := range pages {
		values := url.Values{}
		for name, v := range parameters {
			values.Set(name, v)
		}
		q, err := commerce.ListOf(commerce.KindOrder).Parse(values)
		if err != nil {
			t.Fatal(err)
		}
		page, err := cache.Query(t.Context(), orgs[0], list, q.Index(), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, org := range orgs {
			for _, hit := range page.Hits {
				record := &commerce.Stored{Kind: commerce.KindOrder, ID: hit.ID, OrganizationID: org, Revision: value.Time(hit.Revision), Doc: jsontext.Value(`{}`)}
				if err := store.PutRecord(t.Context(), nil, record); err != nil && !errors.Is(err, fault.ErrChanged) { // on another page, too
					t.Fatal(err)
				}
			}
		}
	}
}

// answer is what a list answers, or the error instead.
type answer struct {
	status int
	Meta   struct{ Total int }
	Code   string
}

// get asks for the path and its parameters, as an integrator of the organization.
func (a *limitedAPI) get(t testing.TB, org value.ID, path string, parameters map[string]string) (got answer, err error) {
	t.Helper()
	multi := map[string][]string{}
	for name, value := range parameters {
		multi[name] = []string{value}
	}
	request := events.APIGatewayProxyRequest{
		Resource: path, Path: path, HTTPMethod: http.MethodGet,
		QueryStringParameters: parameters, MultiValueQueryStringParameters: multi,
		RequestContext: events.APIGatewayProxyRequestContext{
			HTTPMethod: http.MethodGet, Path: path, ResourcePath: path, RequestID: "r", RequestTimeEpoch: time.Now().UnixMilli(),
		},
	}
	servicetest.Authorize(&request, auth.Principal{
		Kind: auth.KindKey, OrganizationID: org, ApplicationID: value.NewID(), KeyID: value.NewID(),
		Scopes: auth.Scopes{auth.OrdersRead, auth.ProductsRead}, RateLimit: 600,
	})
	event, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := a.fleet.Invoke(t.Context(), "api", event)
	if err != nil {
		return got, err
	}
	var response events.APIGatewayProxyResponse
	if err := json.Unmarshal(body, &response); err != nil {
		t.Fatal(err)
	}
	got.status = response.StatusCode
	if err := json.Unmarshal([]byte(response.Body), &got); err != nil {
		t.Fatalf("%d: %s: %v", response.StatusCode, response.Body, err)
	}
	return got, nil
}

// peakMB is the most memory that the function's process has had, of which there
// must have been one.
func (a *limitedAPI) peakMB(t testing.TB) float64 {
	t.Helper()
	processes := map[string]bool{}
	pid := ""
	for _, line := range regexp.MustCompile(`(?m)^api\[(\d+)\]`).FindAllSubmatch(a.output(t), -1) {
		pid = string(line[1])
		processes[pid] = true
	}
	if len(processes) != 1 {
		t.Fatalf("the function had %d processes, want 1", len(processes))
	}
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		t.Fatalf("the kernel does not tell the peak:\n%s", status)
	}
	kB, err := strconv.ParseFloat(string(peak[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB / 1024
}

// TestAFunctionAnswersOrRefusesWithinItsMemory runs the api function in a process
// whose memory the kernel bounds, beside a list that does not fit and several
// others. Whatever is asked, it answers with the exact count or refuses, and goes
// on.
func TestAFunctionAnswersOrRefusesWithinItsMemory(t *testing.T) {
	const memoryMB, kernelMB, orders, others, otherOrders = 64, 160, 250_000, 4, 20_000
	pages := []map[string]string{
		{},
		{"status": "PENDING"},
		{"orderBy": "total"},
		{"search": "so-0000"},
		{"search": "so-0", "page": "2000", "limit": "100"},
		{"orderBy": "orderNumber", "search": "7"},
		{"afterId": "01938f5a-0f00-7000-8000-000000000001", "limit": "100"},
		{"search": "customer", "orderBy": "total"},
		{"currency": "EUR", "orderBy": "total", "page": "2"},
		{},
	}
	api, tenants := newTenants(t, memoryMB, kernelMB, pages, tenants{1, orders}, tenants{others, otherOrders})
	answered, refused := 0, 0
	for round, parameters := range pages {
		for org, total := range tenants {
			got, err := api.get(t, org, "/api/"+commerce.KindOrder.Plural(), parameters)
			if err != nil {
				t.Fatalf("round %d, %v: the process died: %v", round, parameters, err)
			}
			switch {
			case got.status == http.StatusOK:
				answered++
				if _, searched := parameters["search"]; len(parameters) == 0 && got.Meta.Total != total || searched && got.Meta.Total > total {
					t.Errorf("%v: got %d of %d orders", parameters, got.Meta.Total, total)
				}
			case got.status == http.StatusBadRequest && got.Code == "query_too_large" && total == orders:
				refused++
			default:
				t.Errorf("%v of %d orders: got %d %s, want an answer or a refusal for its size", parameters, total, got.status, got.Code)
			}
		}
	}
	t.Logf("answered %d, refused %d", answered, refused)
	if refused == 0 || answered < 10*others {
		t.Errorf("answered %d and refused %d, want both", answered, refused)
	}
	if bytes.Contains(api.output(t), []byte("cannot allocate memory")) {
		t.Error("memory ran out")
	}
}

// BenchmarkInstance asks the api function, in one process of 1,024 MB under a limit of the kernel, for lists and searches
// of each organization in turn, then for the same pages again and again. It reports the latency of those warm pages and
// the peak memory of the process, and fails when the peak is over 1,024 MB.
func BenchmarkInstance(b *testing.B) {
	const memoryMB, kernelMB, warm = 1024, 1024 + 128, 1000
	for _, row := range []struct {
		name   string
		stored tenants
	}{
		{"10 million orders", tenants{1, 10_000_000}},
		{"20 times a million orders", tenants{20, 1_000_000}},
	} {
		b.Run(row.name, func(b *testing.B) {
			pages := []map[string]string{{}, {"status": "PENDING"}, {"status": "PENDING", "page": "2"}}
			all := append([]map[string]string{
				{"orderBy": "total"},
				{"search": "so-00004"},
				{"search": "customer", "orderBy": "total"},
				{"currency": "EUR", "orderBy": "total", "page": "2"},
				{"afterId": "01938f5a-0f00-7000-8000-000000000001", "limit": "100"},
			}, pages...)
			api, tenants := newTenants(b, memoryMB, kernelMB, all, row.stored)
			refused := 0
			ask := func(org value.ID, parameters map[string]string) {
				for {
					got, err := api.get(b, org, "/api/"+commerce.KindOrder.Plural(), parameters)
					switch {
					case err != nil:
						b.Fatalf("%v: the process died: %v", parameters, err)
					case got.status == http.StatusServiceUnavailable: // its load goes on with the next request
						continue
					case got.status == http.StatusBadRequest && got.Code == "query_too_large":
						refused++
					case got.status != http.StatusOK:
						b.Fatalf("%v: got %d %s", parameters, got.status, got.Code)
					}
					return
				}
			}
			var took []time.Duration
			for b.Loop() {
				for _, parameters := range all {
					for org := range tenants {
						ask(org, parameters)
					}
				}
				orgs := slices.Collect(maps.Keys(tenants))
				for n := range warm {
					start := time.Now()
					ask(orgs[n%len(orgs)], pages[n/len(orgs)%len(pages)])
					took = append(took, time.Since(start))
				}
			}
			slices.Sort(took)
			peak := api.peakMB(b)
			if peak > memoryMB {
				b.Errorf("the process had %.0f MiB of %d", peak, memoryMB)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "warm-p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "warm-p99-ms")
			b.ReportMetric(peak, "peak-MiB")
			b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
		})
	}
}
