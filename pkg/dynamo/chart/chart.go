// Package chart lists the items of the service's table, for documents and for
// operators' commands. Package dynamo makes and reads the items; a test holds its
// table to the chart.
package chart

// Form is one kind of item of the table. A name in braces takes the place of a
// value, and a bar separates the alternatives of a GSI1 key.
type Form struct {
	Item    string // what it is
	Type    string // attribute t
	PK, SK  string
	GSI1PK  string // "": it is not in the index
	GSI1SK  string
	Expires bool   // it has a time to live
	Reads   string // how it is looked for
}

// Forms lists the items of the table.
func Forms() []Form {
	const dev, list, due = "ORG#{org}#DEV", "IDX#{org}#{list}", "DUE#{shard}"
	return []Form{
		{"application", "app", dev, "APP#{application}", "", "", false, "one; all of an organization"},
		{"endpoint", "end", dev, "ENDPOINT#{endpoint}", due, "{time}#{endpoint}#CIRCUIT|{time}#{endpoint}", false, "one; all of an organization; due circuits and deletions"},
		{"recovery", "rcv", dev, "RECOVERY#{endpoint}#{recovery}", due, "{time}#{recovery}", true, "one; due ones"},
		{"grant", "grt", dev + "#GRANTS#{application}", "{grant}", "", "", true, "one; all to an application"},
		{"grant in its user's list", "ugr", dev + "#USER#{user}", "{application}#{grant}", "", "", true, "all of a user; those to an application"},
		{"source", "src", "ORG#{org}#SOURCES", "SOURCE#{source}", "", "", false, "one; all of an organization"},
		{"organization of a source", "srcorg", "SOURCE#{source}", "SOURCE", "", "", false, "one, by the id in the URL of a webhook"},
		{"inventory item of a shop", "itm", "ORG#{org}#SHOP#{source}#item#{item}", "STATE", "", "", true, "one (only those whose variant is unknown expire)"},
		{"object of a shop", "obj", "ORG#{org}#SHOP#{source}#{kind}#{object}", "STATE", "", "", true, "one (only those that the shop deleted expire)"},
		{"count of sources", "cnt", "ORG#{org}#SOURCES", "COUNT", "", "", false, "only written, under a condition"},
		{"count of applications and endpoints", "cnt", dev, "COUNT", "", "", false, "only written, under a condition"},
		{"API key", "key", "ORG#{org}#KEYS#{application}", "{key}", "", "", false, "one; all of an application"},
		{"credential", "cred", "KEY#{text}", "KEY", "", "", false, "one, by the presented key"},
		{"client", "cli", "CLIENT#{client}", "CLIENT", "", "", false, "one, by the presented client id"},
		{"signing keys", "sgn", "SIGNING", "KEYS", "", "", false, "one"},
		{"payload", "pay", "ORG#{org}#PAYLOAD#{event}", "PAYLOAD", "", "", true, "one"},
		{"permits", "slt", "ORG#{org}#COUNTERS", "{endpoint}#SLOTS", "", "", true, "one"},
		{"tally", "ctr", "ORG#{org}#COUNTERS#{endpoint}", "TALLY", "", "", false, "one; those of endpoints"},
		{"finished hour", "hour", "ORG#{org}#STATS#{endpoint}", "{time}", "", "", true, "those of an endpoint in a span of time"},
		{"hour of filtered events", "flt", "ORG#{org}#STATS#{endpoint}#FILTERED", "{time}", "", "", true, "those of an endpoint in a span of time"},
		{"delivery", "evt", "ORG#{org}#EVENT#{shard}", "{delivery}", due + "|UNSENT#{endpoint}#{shard}|HELD#{endpoint}#{shard}", "{time}#{delivery}", true, "one; all of a shard; due ones; HELD and FAILED ones of an endpoint"},
		{"request", "req", "ORG#{org}#REQUEST#{hash}", "REQUEST", "", "", true, "one, by its idempotency key"},
		{"receipt", "rcp", "ORG#{org}#RECEIPT#{shard}", "{receipt}", "", "", true, "one; the latest of every shard"},
		{"ledger of stock", "led", "ORG#{org}#STOCK#{record}", "LEDGER", "", "", false, "one, with its record"},
		{"adjustment", "adj", "ORG#{org}#STOCK#{record}", "ADJUSTMENT#{text}", "", "", true, "those of a message"},
		{"record", "rec", "ORG#{org}#{KIND}#{shard}", "{record}", "", "", true, "one; all of a kind's shard (only tombstones expire)"},
		{"organization", "org", "ORGANIZATIONS", "{org}", "", "", false, "all"},
		{"audit entry", "aud", "ORG#{org}#AUDIT", "{entry}", "", "", true, "those of an organization in a span of time, the latest first"},
		{"heartbeat", "beat", "HEARTBEAT", "HEARTBEAT", "", "", false, "only written; the stream's consumers get it"},
		{"rate window", "rate", "RATE#{subject}", "RATE", "", "", true, "one; with the days of its subject"},
		{"failed requests", "fail", "RATE#{org}#failed#{application}", "{minute}#{number}", "", "", true, "the latest of an application"},
		{"waits", "waits", "RATE#{org}#organization", "LEASES", "", "", true, "one"},
		{"day of requests", "reqday", "RATE#{subject}", "USAGE#{date}", "", "", true, "all of a subject, with its rate window"},
		{"day of events", "evtday", "ORG#{org}#USAGE#{application}", "{date}#{endpoint}", "", "", true, "those of an application in a span of time"},
		{"tail entry", "tail", list, "T#{sequence}", "", "", true, "those of a list after or before a sequence"},
		{"manifest", "man", list, "MANIFEST#{layout}", "", "", false, "one; those of all layouts of a list"},
		{"manifest of a rebuild", "man", list, "REBUILD#{layout}", "", "", false, "one; those of all layouts of a list"},
		{"index job", "job", list, "JOB", "JOB#{shard}", "{time}#{org}#{list}", false, "one; due ones"},
		{"activity", "act", "IDX#{org}#activity", "ACTIVITY", "", "", false, "one"},
		{"fields", "fld", "IDX#{org}#fields", "FIELDS", "", "", false, "one"},
		{"chunk", "chk", list + "#{number}", "CHUNK", "", "", false, "those of a segment"},
	}
}
