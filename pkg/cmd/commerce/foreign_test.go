//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func TestARunUsesAnotherTableServerAndLeavesItRunning(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	program, err := tableserver.Dynoxide.Install(t.Context(), filepath.Join(s.data, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := tableserver.Start(t.Context(), program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	remove(t, s.data, "bin") // nothing is to be installed
	s.env = []string{"AWS_ENDPOINT_URL_DYNAMODB=" + other.Endpoint(), "PATH=/nowhere"}
	s.start(t)
	if s.DynamoDBEndpoint != other.Endpoint() {
		t.Errorf("the table server: got %s, want %s", s.DynamoDBEndpoint, other.Endpoint())
	}
	r := s.subscribe(t, "order.created")
	s.send(t, s.order(value.NewID(), "PENDING"))
	await(t, "the order in its list", func() bool { return s.total(t, "/api/orders") == 1 })
	await(t, "its event", func() bool { return len(r.Events()) == 1 })
	for _, name := range []string{"table", "bin"} {
		if _, err := os.Stat(filepath.Join(s.data, name)); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want none", name, err)
		}
	}
	s.stop(t)

	select {
	case <-other.Done():
		t.Fatal("the other table server has ended with the run")
	default:
	}
	s.start(t)
	if got := s.total(t, "/api/orders"); got != 1 {
		t.Errorf("orders after a restart: got %d, want 1", got)
	}
	s.stop(t)

	// With a table server of its own the run finds neither records nor the
	// application there, and goes on with another.
	if err := shareBinary(t.Context(), s.data); err != nil {
		t.Fatal(err)
	}
	s.env = nil
	s.start(t)
	if got := s.total(t, "/api/orders"); got != 0 {
		t.Errorf("orders of the run's own table: got %d, want none", got)
	}
	if resp, body := s.do(t, http.MethodGet, "/api/me", "", map[string]string{"X-API-Key": s.APIKey}); resp.StatusCode != http.StatusOK {
		t.Errorf("the key: got %d %s", resp.StatusCode, body)
	}
	s.stop(t)
}
