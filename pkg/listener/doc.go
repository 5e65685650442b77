// Package listener is the receiving end of webhooks: an [http.Handler] that
// verifies Standard Webhooks signatures, marks what was delivered before, and
// remembers what it has seen, for tests and for watching events arrive. It
// accepts an event only when one of its signatures is right and its time is
// within 300 seconds; everything that came in is recorded, the refused
// included. It keeps the last events in memory only: a receiver that acts on
// events needs a store of its own.
package listener
