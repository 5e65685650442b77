// Package chaos runs the whole service, every function as processes that can be
// killed, and breaks it in every way at once: it kills processes, fails requests
// to the table, delays and repeats messages and has receivers misbehave. On
// request it takes the table away for a while, and lets the processes' clocks
// differ. Then it compares what was sent with what was stored, counted and
// received, and reports whether each promise of the service holds.
package chaos
