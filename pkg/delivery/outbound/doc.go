// Package outbound sends requests to addresses that strangers chose. It checks
// every address of a name between resolution and connection and dials the
// checked address itself, so that no name, form of an address, redirect or
// change of DNS leads to a host that is not globally routable. A request ends
// within its deadline whatever the receiver does, reads a bounded answer, and
// explains its failure in words that the target's owner can act on. The caller
// decides when to send, what a status means and whether to try again.
//
// # Refused targets
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
// The client does not offer it. So a receiver's frames cannot attack us
// (CONTINUATION, SETTINGS and PING floods, windows and stream limits of
// zero), and a connection that died while a function was frozen fails one
// attempt instead of all that share it. HTTP/2 would save
// handshakes only: HTTP/1.1 makes, once, as many connections as requests to one
// host are under way.
package outbound
