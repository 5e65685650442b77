// Package chart lists the items of the service's table, for documents and for
// measurements. Package dynamo makes and reads the items; a test holds its table
// to the chart.
package chart

import (
	"cmp"
	"strings"
)

// Form is one kind of item of the table. A name in braces takes the place of a
// value, and a bar separates the alternatives of a GSI1 key.
type Form struct {
	Item    string // what it is
	Kind    string // how measurements group it
	Type    string // attribute t
	PK, SK  string
	GSI1PK  string // "": it is not in the index
	GSI1SK  string
	Expires bool   // it has a time to live
	Reads   string // how it is looked for
}

// Forms lists the items of the table. The stores own them by file: records (with
// sender keys), accounts (application, API key, credential, client, signing
// keys), endpoints (with counters), deliveries (with payloads and recoveries),
// rate windows, requests, receipts, and lists.
func Forms() []Form {
	const dev, list, due = "ORG#{org}#DEV", "IDX#{org}#{list}", "DUE#{shard}"
	return []Form{
		{"application", "application", "app", dev, "APP#{application}", "", "", false, "one; all of an organization"},
		{"endpoint", "application", "end", dev, "ENDPOINT#{endpoint}", due, "{time}#{endpoint}#CIRCUIT|{time}#{endpoint}", false, "one; all of an organization; due circuits and deletions"},
		{"recovery", "application", "rcv", dev, "RECOVERY#{endpoint}#{recovery}", due, "{time}#{recovery}", true, "one; due ones"},
		{"count of applications and endpoints", "application", "cnt", dev, "COUNT", "", "", false, "only written, under a condition"},
		{"API key", "API key", "key", "ORG#{org}#KEYS#{application}", "{key}", "", "", false, "one; all of an application"},
		{"credential", "API key", "cred", "KEY#{text}", "KEY", "", "", false, "one, by the presented key"},
		{"client", "API key", "cli", "CLIENT#{client}", "CLIENT", "", "", false, "one, by the presented client id"},
		{"signing keys", "other", "sgn", "SIGNING", "KEYS", "", "", false, "one"},
		{"sender keys", "other", "snd", "ORG#{org}#SENDERS", "KEYS", "", "", false, "one"},
		{"payload", "payload", "pay", "ORG#{org}#PAYLOAD#{event}", "PAYLOAD", "", "", true, "one"},
		{"permits", "counters", "slt", "ORG#{org}#COUNTERS", "{endpoint}#SLOTS", "", "", true, "one"},
		{"counter shard", "counters", "ctr", "ORG#{org}#COUNTERS#{endpoint}", "{shard}", "", "", false, "one; all of an endpoint"},
		{"counter shard of an earlier release", "counters", "ctr", "ORG#{org}#COUNTERS", "{endpoint}#{shard}", "", "", false, "all of an endpoint or of several, never written"},
		{"finished hour", "finished hour", "hour", "ORG#{org}#STATS#{endpoint}", "{time}#{shard}", "", "", true, "those of an endpoint in a span of time"},
		{"hour of filtered events", "finished hour", "flt", "ORG#{org}#STATS#{endpoint}#FILTERED", "{time}", "", "", true, "those of an endpoint in a span of time"},
		{"delivery", "delivery", "evt", "ORG#{org}#EVENT#{shard}", "{delivery}", due + "|UNSENT#{endpoint}|HELD#{endpoint}", "{time}#{delivery}", true, "one; all of a shard; due ones; HELD and FAILED ones of an endpoint"},
		{"request", "request", "req", "ORG#{org}#REQUEST#{hash}", "REQUEST", "", "", true, "one, by its idempotency key"},
		{"receipt", "request", "rcp", "ORG#{org}#RECEIPT#{shard}", "{receipt}", "", "", true, "one; the latest of every shard"},
		{"record", "record", "rec", "ORG#{org}#{KIND}#{shard}", "{record}", "", "", true, "one; all of a kind's shard (only tombstones expire)"},
		{"organization", "other", "org", "ORGANIZATIONS", "{org}", "", "", false, "all"},
		{"time up to which the stream is counted", "other", "cntd", "HEARTBEAT", "COUNTED", "", "", false, "one"},
		{"heartbeat", "other", "beat", "HEARTBEAT", "HEARTBEAT", "", "", false, "only written; the stream's consumers get it"},
		{"rate window", "rate window", "rate", "RATE#{subject}", "RATE", "", "", true, "one; with the days of its subject"},
		{"day of requests", "usage", "reqday", "RATE#{subject}", "USAGE#{date}", "", "", true, "all of a subject, with its rate window"},
		{"day of events", "usage", "evtday", "ORG#{org}#USAGE#{application}", "{date}#{endpoint}#{shard}", "", "", true, "those of an application in a span of time"},
		{"tail entry", "index tail", "tail", list, "T#{sequence}", "", "", true, "those of a list after or before a sequence"},
		{"manifest", "index manifest", "man", list, "MANIFEST#{layout}", "", "", false, "one; those of all layouts of a list"},
		{"manifest of a rebuild", "index manifest", "man", list, "REBUILD#{layout}", "", "", false, "one; those of all layouts of a list"},
		{"index job", "index job", "job", list, "JOB", "JOB#{shard}", "{time}#{org}#{list}", false, "one; due ones"},
		{"activity", "index activity", "act", "IDX#{org}#activity", "ACTIVITY", "", "", false, "one"},
		{"chunk", "index chunk", "chk", list + "#{number}", "CHUNK", "", "", false, "those of a segment"},
	}
}

// KindOf tells the kind of the item with the key, or of most items of a
// partition when there is no sort key; "other" when no item has such a key.
func KindOf(pk, sk string) string {
	var first Form
	for _, f := range Forms() {
		if !Matches(f.PK, pk) && (f.Kind != "index job" || !Matches(f.GSI1PK, pk)) {
			continue
		}
		if first.Kind == "" {
			first = f
		}
		if f.PK == first.PK && Matches(f.SK, sk) {
			return f.Kind
		}
	}
	return cmp.Or(first.Kind, "other")
}

// Matches reports whether a key has one of a pattern's alternatives.
func Matches(pattern, key string) bool {
	for one := range strings.SplitSeq(pattern, "|") {
		want, got := strings.Split(one, "#"), strings.Split(key, "#")
		same := len(want) == len(got)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == got[i] || strings.HasPrefix(want[i], "{") && got[i] != ""
		}
		if same {
			return true
		}
	}
	return false
}
