// Package outbound sends requests to addresses that strangers chose. Every
// address of a name is checked between resolution and connection, and the
// checked address is what is dialled, so that no name, form of an address,
// redirect or change of DNS leads to a host that is not globally routable; a
// request ends within its deadline whatever the receiver does, reads a
// bounded answer, and its failure is told in words that its owner can act
// on. When to send, what a status means and whether to try again are left to
// the caller.
//
// # What is refused
//
// Addresses are classified by the IANA special-purpose registries; an IPv6
// address that carries an IPv4 one (IPv4-mapped, IPv4-compatible,
// IPv4-translated, NAT64, 6to4, Teredo, ISATAP) is never better than what it
// carries. Where some of a name's addresses are refused, the others are
// asked; where all are, the target is [Forbidden]. The ports of
// [RefusedPorts] are refused at every address, port 0 too.
//
// # HTTP/2
//
// It is not offered. A receiver's frames are then no surface of ours
// (CONTINUATION, SETTINGS and PING floods, windows and stream limits of
// zero), and one connection that died while a function was frozen takes one
// attempt with it instead of all that share it. Nor would it save work:
// BenchmarkProtocols takes a fifth more CPU for a request over kept
// connections with HTTP/2 than with HTTP/1.1 (53 µs and 44 µs, receiver
// included). What it would save are handshakes: as many connections are made
// as requests to one host are under way, once.
package outbound
