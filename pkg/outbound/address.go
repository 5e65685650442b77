package outbound

import (
	"encoding/binary"
	"net/netip"
)

// class says what an address is for, in a word that can follow "is".
type class string

// public is the class of an address that is globally reachable: the only one
// that may be dialled.
const public class = "public"

// block is a row of a special-purpose registry.
type block struct {
	prefix netip.Prefix
	class  class
}

func row(prefix string, c class) block { return block{netip.MustParsePrefix(prefix), c} }

// specialIPv4 is the IANA IPv4 Special-Purpose Address Registry (RFC 6890 and
// its updates) and the multicast space. What the registry calls globally
// reachable is public, and so is everything outside its blocks.
func specialIPv4() []block {
	return []block{
		row("0.0.0.0/8", "of this network"),
		row("10.0.0.0/8", "private"),
		row("100.64.0.0/10", "shared address space"),
		row("127.0.0.0/8", "loopback"),
		row("169.254.0.0/16", "link-local"),
		row("172.16.0.0/12", "private"),
		row("192.0.0.0/24", "reserved for protocols"),
		row("192.0.0.9/32", public),  // Port Control Protocol anycast
		row("192.0.0.10/32", public), // TURN anycast
		row("192.0.2.0/24", "reserved for documentation"),
		row("192.31.196.0/24", public), // AS112
		row("192.52.193.0/24", public), // AMT
		row("192.88.99.0/24", "a deprecated 6to4 relay"),
		row("192.168.0.0/16", "private"),
		row("192.175.48.0/24", public), // AS112
		row("198.18.0.0/15", "reserved for benchmarks"),
		row("198.51.100.0/24", "reserved for documentation"),
		row("203.0.113.0/24", "reserved for documentation"),
		row("224.0.0.0/4", "multicast"),
		row("240.0.0.0/4", "reserved"),
		row("255.255.255.255/32", "broadcast"),
	}
}

// specialIPv6 is the IANA IPv6 Special-Purpose Address Registry beside the
// global unicast space 2000::/3, which is all of IPv6 that is assigned; what
// lies outside of both is not public. A form that carries an IPv4 address has
// the class that it has when the carried address is public.
func specialIPv6() []block {
	return []block{
		row("::/0", "outside the global unicast space"),
		row("::/128", "unspecified"),
		row("::1/128", "loopback"),
		row("::/96", "deprecated (IPv4-compatible)"),
		row("64:ff9b::/96", public), // NAT64, which AWS offers to hosts that have IPv6 only
		row("64:ff9b:1::/48", "for local translation"),
		row("100::/64", "discard-only"),
		row("100:0:0:1::/64", "a dummy"),
		row("2000::/3", public),
		row("2001::/23", "reserved for protocols"),
		row("2001::/32", public),     // Teredo
		row("2001:1::1/128", public), // Port Control Protocol anycast
		row("2001:1::2/128", public), // TURN anycast
		row("2001:1::3/128", public), // DNS-SD service registration anycast
		row("2001:2::/48", "reserved for benchmarks"),
		row("2001:3::/32", public),     // AMT
		row("2001:4:112::/48", public), // AS112
		row("2001:10::/28", "deprecated (ORCHID)"),
		row("2001:20::/28", public), // ORCHIDv2
		row("2001:30::/28", public), // remote identification of drones
		row("2001:db8::/32", "reserved for documentation"),
		row("2002::/16", public),         // 6to4
		row("2620:4f:8000::/48", public), // AS112
		row("3fff::/20", "reserved for documentation"),
		row("5f00::/16", "for segment routing"),
		row("fc00::/7", "unique local"),
		row("fe80::/10", "link-local"),
		row("fec0::/10", "deprecated (site-local)"),
		row("ff00::/8", "multicast"),
	}
}

// classifier tells what addresses are for.
type classifier struct {
	ipv4, ipv6                                                   []block
	compatible, translated, nat64, localNAT64, sixToFour, teredo netip.Prefix
}

func newClassifier() *classifier {
	return &classifier{
		ipv4: specialIPv4(), ipv6: specialIPv6(),
		compatible: netip.MustParsePrefix("::/96"),           // RFC 4291, 2.5.5.1
		translated: netip.MustParsePrefix("::ffff:0:0:0/96"), // RFC 2765
		nat64:      netip.MustParsePrefix("64:ff9b::/96"),    // RFC 6052
		localNAT64: netip.MustParsePrefix("64:ff9b:1::/48"),  // RFC 8215
		sixToFour:  netip.MustParsePrefix("2002::/16"),       // RFC 3056
		teredo:     netip.MustParsePrefix("2001::/32"),       // RFC 4380
	}
}

// verdict is what an address is for, and the address within it that decided:
// an IPv4 address that an IPv6 one carries, or the address itself.
type verdict struct {
	class   class
	decides netip.Addr
}

// classify gives an address the class of the most specific block that holds
// it. An IPv6 address that carries an IPv4 one is never better than what it
// carries.
func (c *classifier) classify(addr netip.Addr) verdict {
	if addr.Zone() != "" {
		return verdict{"scoped to a link", addr}
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return verdict{mostSpecific(c.ipv4, addr, public), addr}
	}
	for _, carried := range c.carried(addr) {
		if v := c.classify(carried); v.class != public {
			return v
		}
	}
	return verdict{mostSpecific(c.ipv6, addr, ""), addr}
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
	case c.compatible.Contains(addr), c.translated.Contains(addr), c.nat64.Contains(addr), c.localNAT64.Contains(addr):
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
