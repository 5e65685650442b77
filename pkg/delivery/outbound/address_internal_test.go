package outbound

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// addressTable reads the addresses and their classes.
func addressTable(t testing.TB) map[string]class {
	t.Helper()
	text, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]class{}
	for line := range strings.Lines(string(text)) {
		address, want, row := strings.Cut(strings.TrimSpace(line), "\t")
		if row {
			table[address] = class(want)
		}
	}
	return table
}

func TestAddressesAreClassifiedByTheRegistries(t *testing.T) {
	c := newClassifier()
	for address, want := range addressTable(t) {
		if got := c.classify(netip.MustParseAddr(address)); got != want {
			t.Errorf("classify(%s) = %q, want %q", address, got, want)
		}
	}
}

func TestEveryBlockIsCheckedAtItsEdges(t *testing.T) {
	listed := map[netip.Addr]bool{}
	for address := range addressTable(t) {
		listed[netip.MustParseAddr(address)] = true
	}
	for _, b := range append(specialIPv4(), specialIPv6()...) {
		first, last := b.prefix.Addr(), lastOf(b.prefix)
		for _, addr := range []netip.Addr{first.Prev(), first, last, last.Next()} {
			if addr.IsValid() && !listed[addr] {
				t.Errorf("%s, at the edge of %s, is not in the table", addr, b.prefix)
			}
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

func TestOnlyCheckedTCPAddressesAreDialled(t *testing.T) {
	g := &guard{classifier: newClassifier(), ports: RefusedPorts()}
	for _, row := range []struct {
		network, address string
		allowed          bool
	}{
		{"tcp4", "8.8.8.8:443", true},
		{"tcp6", "[2606:4700:4700::1111]:443", true},
		{"tcp4", "127.0.0.1:443", false},
		{"tcp6", "[::ffff:10.0.0.1]:443", false},
		{"tcp4", "8.8.8.8:22", false},
		{"tcp4", "8.8.8.8:0", false},
		{"unix", "/run/docker.sock", false},
		{"udp4", "8.8.8.8:53", false},
		{"udp4", "8.8.8.8:443", false},
		{"tcp4", "example.com:443", false},
	} {
		t.Run(fmt.Sprintf("%v_%v", row.network, row.address), func(t *testing.T) {
			if err := g.checkSocket(row.network, row.address, nil); (err == nil) != row.allowed {
				t.Errorf("dial %s %s: %v, want allowed %t", row.network, row.address, err, row.allowed)
			}
		})
	}
}

// What the standard library takes for special is never public here, neither
// by itself nor within an IPv6 address that carries it.
func FuzzNothingSpecialIsPublic(f *testing.F) {
	for address := range addressTable(f) {
		addr := netip.MustParseAddr(address).WithZone("")
		f.Add(addr.AsSlice())
	}
	c := newClassifier()
	f.Fuzz(func(t *testing.T, bytes []byte) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		got := c.classify(addr)
		if got == "" {
			t.Errorf("%s has no class", addr)
		}
		if got == public && special(addr) {
			t.Errorf("%s is public", addr)
		}
		if again := c.classify(addr.Unmap()); again != got {
			t.Errorf("%s is %s, unmapped it is %s", addr, got, again)
		}
		if !addr.Is4() {
			return
		}
		for name, carrier := range carriers(addr) {
			if outer := c.classify(carrier); outer == public && got != public {
				t.Errorf("%s %s is public, %s is %s", name, carrier, addr, got)
			}
		}
	})
}

func special(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() ||
		a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() || !a.IsGlobalUnicast()
}

// carriers writes an IPv4 address into every form that carries one.
func carriers(v4 netip.Addr) map[string]netip.Addr {
	b := v4.As4()
	at := func(prefix string, positions ...int) netip.Addr {
		out := netip.MustParseAddr(prefix).As16()
		for _, p := range positions {
			copy(out[p:], b[:])
		}
		return netip.AddrFrom16(out)
	}
	teredo := at("2001:0:808:808::").As16()
	for i := range b {
		teredo[12+i] = ^b[i]
	}
	return map[string]netip.Addr{
		"mapped":           at("::ffff:0:0", 12),
		"compatible":       at("::", 12),
		"translated":       at("::ffff:0:0:0", 12),
		"NAT64":            at("64:ff9b::", 12),
		"local NAT64":      at("64:ff9b:1::", 12),
		"6to4":             at("2002::1", 2),
		"Teredo server":    at("2001::f7f7:f7f7", 4),
		"Teredo client":    netip.AddrFrom16(teredo),
		"ISATAP":           at("2606:4700::5efe:0:0", 12),
		"universal ISATAP": at("2606:4700::200:5efe:0:0", 12),
		"ISATAP in 6to4":   at("2002:808:808::5efe:0:0", 12),
	}
}
