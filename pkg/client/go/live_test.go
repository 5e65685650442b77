package commerce_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	commerce "github.com/commerce-integration/service/pkg/client/go"
)

// running is the service that the file COMMERCE_RUN describes, as .local/run.json
// of `make run` does. Without it the tests of this file are skipped.
type running struct {
	BaseURL, ApplicationID, ClientID, ClientSecret, JWT string
}

func live(t *testing.T) running {
	t.Helper()
	name := os.Getenv("COMMERCE_RUN")
	if name == "" {
		t.Skip("COMMERCE_RUN names no running service")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var r running
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r running) application() *commerce.Client {
	return commerce.New(r.BaseURL, commerce.Config{ClientID: r.ClientID, ClientSecret: r.ClientSecret})
}

func TestEveryWayThroughAListFindsTheSame(t *testing.T) {
	c := live(t).application()
	list, err := c.ListProducts(t.Context(), &commerce.ListProductsParams{Limit: new(1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, params := range map[string]*commerce.ListProductsParams{
		"without parameters": nil,
		"page by page":       {Limit: new(2), OrderBy: new("name")},
		"by id":              {Limit: new(2), AfterID: new(commerce.FirstID)},
	} {
		found := map[string]bool{}
		for product, err := range c.AllProducts(t.Context(), params) {
			if err != nil {
				t.Fatal(err)
			}
			found[product.ID] = true
		}
		if int64(len(found)) != list.Meta.Total || len(found) == 0 {
			t.Errorf("%s: %d products, want %d", name, len(found), list.Meta.Total)
		}
	}
	var refused *commerce.Error
	if _, err := c.ListProducts(t.Context(), &commerce.ListProductsParams{Limit: new(101)}); !errors.As(err, &refused) || refused.Code != "validation_failed" || len(refused.Details) != 1 {
		t.Errorf("%v, want validation_failed with its parameter", err)
	}
}

func TestTheReadmesProgramReadsOrdersAndWebhooks(t *testing.T) {
	r := live(t)
	user := commerce.New(r.BaseURL, commerce.Config{Token: r.JWT})
	address := freeAddress(t)
	endpoint, err := user.CreateWebhookEndpoint(t.Context(), &commerce.CreateWebhookEndpointParams{ApplicationID: r.ApplicationID},
		commerce.CreateWebhookEndpointDto{URL: "http://" + address + "/webhooks", Events: []string{"order.*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := user.DeleteWebhookEndpoint(t.Context(), endpoint.ID, nil); err != nil {
			t.Error(err)
		}
	}()
	lines := runReadme(t, "COMMERCE_URL="+r.BaseURL, "CLIENT_ID="+r.ClientID, "CLIENT_SECRET="+r.ClientSecret,
		"WEBHOOK_SECRET="+endpoint.Secret, "ADDRESS="+address)

	paid := &commerce.ListOrdersParams{PaymentStatus: []string{"PAID"}, OrderBy: new("placedAt")}
	for order, err := range r.application().AllOrders(t.Context(), paid) {
		if err != nil {
			t.Fatal(err)
		}
		if got, want := <-lines, fmt.Sprint(order.OrderNumber, " ", order.Total, " ", order.Currency); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	for { // until the program listens
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	event, err := user.SendTestEvent(t.Context(), endpoint.ID, nil, &commerce.SendTestDto{Type: new("order.paid")})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-lines; !strings.HasPrefix(got, "order.paid ") {
		t.Errorf("printed %q for event %s, want order.paid and the order's number", got, event.EventID)
	}
}

// runReadme starts the README's program, ends it with the test, and gives what it
// prints.
func runReadme(t *testing.T, env ...string) <-chan string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "main")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary)
	run.Env, run.Stderr = slices.Concat(os.Environ(), env), os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Wait() })
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
