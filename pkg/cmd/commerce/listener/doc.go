// Package listener receives webhooks, for tests and for watching events
// arrive. Its [http.Handler] verifies Standard Webhooks signatures, accepting
// a timestamp within 300 seconds, tells which events it has answered before,
// and records everything that came in, refused webhooks too. It keeps the last
// events in memory only: a receiver that acts on events needs a store.
package listener
