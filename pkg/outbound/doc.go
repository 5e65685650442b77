// Package outbound sends requests to addresses that strangers chose. Every
// address is checked at the moment it is dialled, after resolution, so that
// no name, redirect or change of DNS leads to a host that is not globally
// routable; a request ends within its deadline whatever the receiver does,
// reads a bounded answer, and its failure is told in words that its owner
// can act on. When to send, what a status means and whether to try again are
// left to the caller.
package outbound
