// Package runner runs the whole service on one machine: a table server, a queue server, the gateway and the event
// sources, as template.yaml declares them, around the very handlers that are deployed. What was acknowledged survives a
// kill of any part, and nothing that was started outlives the runner. What the functions do is left to package app.
package runner
