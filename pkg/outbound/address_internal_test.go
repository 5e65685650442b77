package outbound

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestAddressesAreClassifiedByTheRegistries(t *testing.T) {
	table, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, rows := newClassifier(), 0
	for line := range strings.Lines(string(table)) {
		address, want, row := strings.Cut(strings.TrimSpace(line), "\t")
		if !row {
			continue
		}
		rows++
		if got := c.classify(netip.MustParseAddr(address)); got != want {
			t.Errorf("classify(%s) = %q, want %q", address, got, want)
		}
	}
	if rows < 100 {
		t.Errorf("%d addresses were checked, want the whole table", rows)
	}
}

func TestOnlyCheckedTCPAddressesAreDialled(t *testing.T) {
	check := guard(newClassifier())
	for _, row := range []struct {
		network, address string
		allowed          bool
	}{
		{"tcp4", "8.8.8.8:443", true},
		{"tcp6", "[2606:4700:4700::1111]:443", true},
		{"tcp4", "127.0.0.1:443", false},
		{"tcp6", "[::ffff:10.0.0.1]:443", false},
		{"unix", "/run/docker.sock", false},
		{"udp4", "8.8.8.8:53", false},
		{"tcp4", "example.com:443", false},
	} {
		if err := check(row.network, row.address, nil); (err == nil) != row.allowed {
			t.Errorf("dial %s %s: %v, want allowed %t", row.network, row.address, err, row.allowed)
		}
	}
}
