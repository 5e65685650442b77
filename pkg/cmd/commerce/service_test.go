package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// service is the whole service, run by the command.
type service struct {
	*runner.Info
	data string
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// startService runs "commerce run" in a new data folder until the test ends.
func startService(t *testing.T, flags ...string) *service {
	t.Helper()
	return startServiceIn(t, t.TempDir(), flags...)
}

func startServiceIn(t *testing.T, data string, flags ...string) *service {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	shareBinary(t, data)
	s := &service{data: data, log: &lockedBuffer{}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		root := newRootCommand()
		root.SetArgs(append([]string{"run", "--addr", "127.0.0.1:0", "--data", data, "--template", "../../../template.yaml"}, flags...))
		root.SetOut(s.log)
		root.SetErr(s.log)
		ended <- root.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the service ended: %v\n%s", err, s.log)
			}
		case <-time.After(15 * time.Second):
			t.Errorf("the service did not end within 15 s\n%s", s.log)
		}
	})
	deadline := time.Now().Add(time.Minute)
	for {
		file, err := runner.ReadInfo(data)
		if err == nil {
			s.Info = file
			return s
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("the service did not start: %v\n%s", err, s.log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service did not start in time\n%s", s.log)
		}
	}
}

// shareBinary lets every data folder use one installation of the table
// server.
func shareBinary(t *testing.T, data string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(cache, "commerce-integration", "dynoxide-"+tableserver.Version)
	if _, err := tableserver.Install(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(shared, filepath.Join(data, "bin")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// get reads a path with the service's API key and fails unless it is 200.
func (s *service) get(t *testing.T, path string, into any) {
	t.Helper()
	resp, body := s.do(t, http.MethodGet, path, "", map[string]string{"X-API-Key": s.APIKey})
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got %d %s, want 200", path, resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

func (s *service) do(t *testing.T, method, path, body string, header map[string]string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.BaseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range header {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// user makes a call with the service's user token.
func (s *service) user(t *testing.T, method, path, body string) (*http.Response, []byte) {
	t.Helper()
	return s.do(t, method, path, body, map[string]string{"Authorization": "Bearer " + s.JWT})
}

type page struct {
	Data []map[string]any `json:"data"`
	Meta struct {
		Total int `json:"total"`
	} `json:"meta"`
}

// all walks a list by id.
func (s *service) all(t *testing.T, path string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for after := "00000000-0000-0000-0000-000000000000"; ; {
		var p page
		s.get(t, path+"?limit=100&afterId="+after, &p)
		all = append(all, p.Data...)
		if len(p.Data) == 0 {
			return all
		}
		after, _ = p.Data[len(p.Data)-1]["id"].(string)
	}
}

// total is how many entries a list has.
func (s *service) total(t *testing.T, path string) int {
	t.Helper()
	var p page
	s.get(t, path, &p)
	return p.Meta.Total
}

// await polls until the condition holds.
func await(t *testing.T, what string, patience time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// commerce runs another command against the service.
func (s *service) commerce(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append(args, "--data", s.data))
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("commerce %s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// number reads an amount exactly.
func number(t *testing.T, v any) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if !ok {
		t.Fatalf("%v is no number", v)
	}
	return r
}

func samples(t *testing.T, path string) string {
	t.Helper()
	full := filepath.Join("..", "..", "..", "..", "shared", "data", path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no sample data: %v", err)
	}
	return full
}

func TestNorthwindOverTheAPIEqualsItsFiles(t *testing.T) {
	dir := samples(t, "northwind")
	s := startService(t, "--no-demo", "--log-level", "error")
	s.commerce(t, "application", "set", s.ApplicationID, "--rate-limit", "1000000")
	s.commerce(t, "import", "--format", "northwind", dir)
	for path, want := range map[string]int{"/api/categories": 8, "/api/products": 77, "/api/customers": 91, "/api/orders": 830} {
		await(t, path, 30*time.Second, func() bool { return s.total(t, path) == want })
	}

	files := readNorthwind(t, dir)
	lines, gross := 0, new(big.Rat)
	perCustomer := map[string]*big.Rat{}
	for _, order := range s.all(t, "/api/orders") {
		items := order["items"].([]any)
		lines += len(items)
		for _, item := range items {
			gross.Add(gross, number(t, item.(map[string]any)["subtotal"]))
		}
		customer := order["customerId"].(string)
		if perCustomer[customer] == nil {
			perCustomer[customer] = new(big.Rat)
		}
		perCustomer[customer].Add(perCustomer[customer], number(t, order["total"]))
		if order["currency"] != "USD" {
			t.Fatalf("order %v: currency %v, want USD", order["orderNumber"], order["currency"])
		}
	}
	if lines != 2155 || gross.Cmp(files.gross) != 0 {
		t.Errorf("lines %d worth %s, want 2155 worth %s", lines, gross.FloatString(4), files.gross.FloatString(4))
	}

	var top page
	s.get(t, "/api/customers?orderBy=totalSpent&limit=5", &top)
	for i, customer := range top.Data {
		if want := files.top[i]; customer["customerNumber"] != want.number || number(t, customer["totalSpent"]).Cmp(want.spent) != 0 {
			t.Errorf("customer %d by totalSpent: got %v with %v, want %s with %s",
				i+1, customer["customerNumber"], customer["totalSpent"], want.number, want.spent.FloatString(4))
		}
		if got := perCustomer[customer["id"].(string)]; got.Cmp(files.top[i].spent) != 0 {
			t.Errorf("orders of customer %v: got %s in all, want %s", customer["customerNumber"], got.FloatString(4), files.top[i].spent.FloatString(4))
		}
	}
	if got := s.total(t, "/api/orders?search="+url.QueryEscape("frankenversand")); got != files.ordersOf["FRANK"] {
		t.Errorf("orders found by name: got %d, want %d", got, files.ordersOf["FRANK"])
	}
}

func TestShopifyVariantsBecomeProducts(t *testing.T) {
	var files []string
	for _, name := range []string{"apparel.csv", "home-and-garden.csv", "jewelery.csv"} {
		files = append(files, samples(t, "shopify/"+name))
	}
	s := startService(t, "--no-demo", "--log-level", "error")
	s.commerce(t, "application", "set", s.ApplicationID, "--rate-limit", "1000000")
	s.commerce(t, append([]string{"import", "--format", "shopify"}, files...)...)
	await(t, "66 products", 20*time.Second, func() bool { return s.total(t, "/api/products") == 66 })
	// A second import of the same files changes nothing.
	s.commerce(t, append([]string{"import", "--format", "shopify"}, files...)...)
	var p page
	s.get(t, "/api/products?orderBy=updatedAt&limit=1", &p)
	before := p.Data[0]["updatedAt"]
	sum := new(big.Rat)
	for _, product := range s.all(t, "/api/products") {
		sum.Add(sum, number(t, product["sellingPrice"]))
	}
	if want := sumShopify(t, files); sum.Cmp(want) != 0 {
		t.Errorf("prices: got %s in all, want %s", sum.FloatString(4), want.FloatString(4))
	}
	s.get(t, "/api/products?orderBy=updatedAt&limit=1", &p)
	if p.Data[0]["updatedAt"] != before || p.Meta.Total != 66 {
		t.Errorf("after the second import: %d products, the last changed at %v; want 66, %v", p.Meta.Total, p.Data[0]["updatedAt"], before)
	}
}
