package outbound

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// class is the purpose of an address, in words that can follow "is".
type class string

// public is the class of an address that is globally reachable: the only one
// that may be dialled.
const public class = "public"

// block is an entry of a special-purpose registry.
type block struct {
	prefix netip.Prefix
	class  class
}

func blockOf(prefix string, c class) block { return block{netip.MustParsePrefix(prefix), c} }

// specialIPv4 is the IANA IPv4 Special-Purpose Address Registry (RFC 6890 and
// its updates) and the multicast space. What the registry calls globally
// reachable is public, and so is everything outside its blocks.
func specialIPv4() []block {
	return []block{
		blockOf("0.0.0.0/8", "of this network"),
		blockOf("10.0.0.0/8", "private"),
		blockOf("100.64.0.0/10", "shared address space"),
		blockOf("127.0.0.0/8", "loopback"),
		blockOf("169.254.0.0/16", "link-local"),
		blockOf("172.16.0.0/12", "private"),
		blockOf("192.0.0.0/24", "reserved for protocols"),
		blockOf("192.0.0.9/32", public),  // Port Control Protocol anycast
		blockOf("192.0.0.10/32", public), // TURN anycast
		blockOf("192.0.2.0/24", "reserved for documentation"),
		blockOf("192.31.196.0/24", public), // AS112
		blockOf("192.52.193.0/24", public), // AMT
		blockOf("192.88.99.0/24", "a deprecated 6to4 relay"),
		blockOf("192.168.0.0/16", "private"),
		blockOf("192.175.48.0/24", public), // AS112
		blockOf("198.18.0.0/15", "reserved for benchmarks"),
		blockOf("198.51.100.0/24", "reserved for documentation"),
		blockOf("203.0.113.0/24", "reserved for documentation"),
		blockOf("224.0.0.0/4", "multicast"),
		blockOf("240.0.0.0/4", "reserved"),
		blockOf("255.255.255.255/32", "broadcast"),
	}
}

// specialIPv6 is the IANA IPv6 Special-Purpose Address Registry and the global
// unicast space 2000::/3, which is all of IPv6 that is assigned; nothing
// outside of both is public. A form that carries an IPv4 address has its class
// for the case that the carried address is public.
func specialIPv6() []block {
	return []block{
		blockOf("::/0", "outside the global unicast space"),
		blockOf("::/128", "unspecified"),
		blockOf("::1/128", "loopback"),
		blockOf("::/96", "deprecated (IPv4-compatible)"),
		blockOf("64:ff9b::/96", public), // NAT64, which AWS offers to hosts that have IPv6 only
		blockOf("64:ff9b:1::/48", "for local translation"),
		blockOf("100::/64", "discard-only"),
		blockOf("100:0:0:1::/64", "a dummy"),
		blockOf("2000::/3", public),
		blockOf("2001::/23", "reserved for protocols"),
		blockOf("2001::/32", public),     // Teredo
		blockOf("2001:1::1/128", public), // Port Control Protocol anycast
		blockOf("2001:1::2/128", public), // TURN anycast
		blockOf("2001:1::3/128", public), // DNS-SD service registration anycast
		blockOf("2001:2::/48", "reserved for benchmarks"),
		blockOf("2001:3::/32", public),     // AMT
		blockOf("2001:4:112::/48", public), // AS112
		blockOf("2001:10::/28", "deprecated (ORCHID)"),
		blockOf("2001:20::/28", public), // ORCHIDv2
		blockOf("2001:30::/28", public), // remote identification of drones
		blockOf("2001:db8::/32", "reserved for documentation"),
		blockOf("2002::/16", public),         // 6to4
		blockOf("2620:4f:8000::/48", public), // AS112
		blockOf("3fff::/20", "reserved for documentation"),
		blockOf("5f00::/16", "for segment routing"),
		blockOf("fc00::/7", "unique local"),
		blockOf("fe80::/10", "link-local"),
		blockOf("fec0::/10", "deprecated (site-local)"),
		blockOf("ff00::/8", "multicast"),
	}
}

// classifier knows the purposes of addresses.
type classifier struct {
	ipv4, ipv6        []block
	last4             []netip.Prefix // forms whose last four bytes are an IPv4 address
	sixToFour, teredo netip.Prefix
}

func newClassifier() *classifier {
	return &classifier{
		ipv4: specialIPv4(), ipv6: specialIPv6(),
		last4: []netip.Prefix{
			netip.MustParsePrefix("::/96"),           // IPv4-compatible, RFC 4291, 2.5.5.1
			netip.MustParsePrefix("::ffff:0:0:0/96"), // IPv4-translated, RFC 2765
			netip.MustParsePrefix("64:ff9b::/96"),    // NAT64, RFC 6052
			netip.MustParsePrefix("64:ff9b:1::/48"),  // local NAT64, RFC 8215
		},
		sixToFour: netip.MustParsePrefix("2002::/16"), // RFC 3056
		teredo:    netip.MustParsePrefix("2001::/32"), // RFC 4380
	}
}

// classify gives an address the class of the most specific block that holds
// it. An IPv6 address that carries an IPv4 one is never better than what it
// carries.
func (c *classifier) classify(addr netip.Addr) class {
	if addr.Zone() != "" {
		return "scoped to a link"
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return mostSpecific(c.ipv4, addr, public)
	}
	for _, carried := range c.carried(addr) {
		if v := c.classify(carried); v != public {
			return v
		}
	}
	return mostSpecific(c.ipv6, addr, "")
}

// carried returns the IPv4 addresses that tunnels and translators would take
// from an IPv6 address.
func (c *classifier) carried(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	var inner []netip.Addr
	switch {
	case addr == netip.IPv6Unspecified() || addr == netip.IPv6Loopback():
		return nil
	case slices.ContainsFunc(c.last4, func(p netip.Prefix) bool { return p.Contains(addr) }):
		return []netip.Addr{at(12)}
	case c.sixToFour.Contains(addr):
		inner = append(inner, at(2))
	case c.teredo.Contains(addr):
		// The server's address, and the client's with its bits inverted.
		var client [4]byte
		binary.BigEndian.PutUint32(client[:], ^binary.BigEndian.Uint32(b[12:]))
		inner = append(inner, at(4), netip.AddrFrom4(client))
	}
	// ISATAP (RFC 5214, 6.1) is a form of the interface identifier, in any prefix.
	if marker := binary.BigEndian.Uint32(b[8:]); marker&^0x02000000 == 0x00005efe {
		inner = append(inner, at(12))
	}
	return inner
}

func mostSpecific(blocks []block, addr netip.Addr, fallback class) class {
	found, bits := fallback, -1
	for _, b := range blocks {
		if b.prefix.Bits() > bits && b.prefix.Contains(addr) {
			found, bits = b.class, b.prefix.Bits()
		}
	}
	return found
}
