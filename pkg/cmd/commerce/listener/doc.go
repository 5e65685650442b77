// Package listener receives webhooks, for tests and for watching events
// arrive. Its [http.Handler] verifies Standard Webhooks signatures, accepting
// a timestamp within 300 seconds, and tells of everything that came in, refused
// webhooks too, with which events it has answered before. It keeps no event: a
// receiver that acts on events needs a store.
package listener
