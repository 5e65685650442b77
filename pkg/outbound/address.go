package outbound

import (
	"encoding/binary"
	"net/netip"
)

// Public is the class of an address that is globally routable.
const Public = "public"

// block is an entry of the special-purpose registries. class is [Public]
// for what they call globally reachable.
type block struct{ prefix, class string }

// specialIPv4 is the IANA IPv4 Special-Purpose Address Registry (RFC 6890 and
// its updates) and the multicast space. The longest prefix that covers an
// address decides.
func specialIPv4() []block {
	return []block{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared address space"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocol assignment"},
		{"192.0.0.9/32", Public},  // Port Control Protocol anycast
		{"192.0.0.10/32", Public}, // TURN anycast
		{"192.0.2.0/24", "documentation"},
		{"192.88.99.0/24", "deprecated 6to4 relay"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "benchmarking"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved"},
		{"255.255.255.255/32", "broadcast"},
	}
}

// specialIPv6 is the IANA IPv6 Special-Purpose Address Registry within the
// global unicast space 2000::/3, which is all of IPv6 that is assigned; what
// lies outside it is never public.
func specialIPv6() []block {
	return []block{
		{"::/0", "outside the global unicast space"},
		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"64:ff9b:1::/48", "local-use translation"},
		{"100::/64", "discard-only"},
		{"100:0:0:1::/64", "dummy prefix"},
		{"2000::/3", Public},
		{"2001::/23", "protocol assignment"},
		{"2001:1::1/128", Public}, // Port Control Protocol anycast
		{"2001:1::2/128", Public}, // TURN anycast
		{"2001:1::3/128", Public}, // DNS-SD service registration anycast
		{"2001:2::/48", "benchmarking"},
		{"2001:3::/32", Public},     // AMT
		{"2001:4:112::/48", Public}, // AS112
		{"2001:10::/28", "deprecated ORCHID"},
		{"2001:20::/28", Public}, // ORCHIDv2
		{"2001:30::/28", Public}, // drone remote identification
		{"2001:db8::/32", "documentation"},
		{"3fff::/20", "documentation"},
		{"5f00::/16", "segment routing"},
		{"fc00::/7", "unique local"},
		{"fe80::/10", "link-local"},
		{"fec0::/10", "deprecated site-local"},
		{"ff00::/8", "multicast"},
	}
}

// classifier answers what an address is for.
type classifier struct {
	ipv4, ipv6               []classified
	nat64, sixToFour, teredo netip.Prefix
}

type classified struct {
	prefix netip.Prefix
	class  string
}

func newClassifier() *classifier {
	return &classifier{
		ipv4: parse(specialIPv4()), ipv6: parse(specialIPv6()),
		nat64:     netip.MustParsePrefix("64:ff9b::/96"),
		sixToFour: netip.MustParsePrefix("2002::/16"),
		teredo:    netip.MustParsePrefix("2001::/32"),
	}
}

func parse(blocks []block) []classified {
	out := make([]classified, len(blocks))
	for i, b := range blocks {
		out[i] = classified{netip.MustParsePrefix(b.prefix), b.class}
	}
	return out
}

// classify names what an address is for; [Public] alone may be dialled. An
// IPv6 address that carries an IPv4 one is what the carried one is.
func (c *classifier) classify(addr netip.Addr) string {
	if addr.Zone() != "" {
		return "scoped to a link"
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return longest(c.ipv4, addr, Public)
	}
	b := addr.As16()
	switch {
	case c.nat64.Contains(addr):
		return c.classify(netip.AddrFrom4([4]byte(b[12:])))
	case c.sixToFour.Contains(addr):
		return c.classify(netip.AddrFrom4([4]byte(b[2:6])))
	case c.teredo.Contains(addr):
		// RFC 4380: the server's address, and the client's with its bits inverted.
		if class := c.classify(netip.AddrFrom4([4]byte(b[4:8]))); class != Public {
			return class
		}
		var client [4]byte
		binary.BigEndian.PutUint32(client[:], ^binary.BigEndian.Uint32(b[12:]))
		return c.classify(netip.AddrFrom4(client))
	}
	return longest(c.ipv6, addr, "unassigned")
}

func longest(blocks []classified, addr netip.Addr, fallback string) string {
	class, bits := fallback, -1
	for _, b := range blocks {
		if b.prefix.Bits() > bits && b.prefix.Contains(addr) {
			class, bits = b.class, b.prefix.Bits()
		}
	}
	return class
}
