// Package workload is what the bench and the chaos run share: the service as a
// process or within this one, organizations that send records to it, and
// receivers of their webhooks. It measures when each event arrives; what to
// send, what to break and how to judge the outcome is up to the two.
package workload
