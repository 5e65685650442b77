package dynamo

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

// Chart lists the items of the table. The stores own them by file: records,
// accounts (application, API key, credential), endpoints (with counters),
// deliveries (with payloads and recoveries), rate windows, and lists.
func Chart() []Form {
	const dev, list, due = "ORG#{org}#DEV", "IDX#{org}#{list}", "DUE#{shard}"
	return []Form{
		{"application", "application", typeApplication, dev, "APP#{application}", "", "", false, "one; all of an organization"},
		{"endpoint", "application", typeEndpoint, dev, "ENDPOINT#{endpoint}", due, "{time}#{endpoint}#CIRCUIT|{time}#{endpoint}", false, "one; all of an organization; due circuits and deletions"},
		{"recovery", "application", typeRecovery, dev, "RECOVERY#{endpoint}#{recovery}", due, "{time}#{recovery}", true, "one; due ones"},
		{"count of applications and endpoints", "application", typeCount, dev, "COUNT", "", "", false, "only written, under a condition"},
		{"API key", "API key", typeKey, "ORG#{org}#KEYS#{application}", "{key}", "", "", false, "one; all of an application"},
		{"credential", "API key", typeCredential, "KEY#{text}", "KEY", "", "", false, "one, by the presented key"},
		{"payload", "payload", typePayload, "ORG#{org}#PAYLOAD#{event}", "PAYLOAD", "", "", true, "one"},
		{"permits", "counters", typePermits, "ORG#{org}#COUNTERS", "{endpoint}#SLOTS", "", "", true, "one"},
		{"counter shard", "counters", typeCounters, "ORG#{org}#COUNTERS", "{endpoint}#{shard}", "", "", false, "one; all of an endpoint or of several"},
		{"finished hour", "finished hour", typeHour, "ORG#{org}#STATS#{endpoint}", "{time}#{shard}", "", "", true, "those of an endpoint in a span of time"},
		{"delivery", "delivery", typeDelivery, "ORG#{org}#EVENT#{shard}", "{delivery}", due + "|UNSENT#{endpoint}|HELD#{endpoint}", "{time}#{delivery}", true, "one; all of a shard; due ones; HELD and FAILED ones of an endpoint"},
		{"record", "record", typeRecord, "ORG#{org}#{KIND}#{shard}", "{record}", "", "", true, "one; all of a kind's shard (only tombstones expire)"},
		{"organization", "other", typeOrganization, "ORGANIZATIONS", "{org}", "", "", false, "all"},
		{"rate window", "rate window", typeRate, "RATE#{subject}", "RATE", "", "", true, "one"},
		{"tail entry", "index tail", typeTail, list, "T#{sequence}", "", "", true, "those of a list after or before a sequence"},
		{"manifest", "index manifest", typeManifest, list, "MANIFEST", "", "", false, "one"},
		{"manifest of a rebuild", "index manifest", typeManifest, list, "REBUILD", "", "", false, "one"},
		{"index job", "index job", typeJob, list, "JOB", "JOB#{shard}", "{time}#{org}#{list}", false, "one; due ones"},
		{"chunk", "index chunk", typeChunk, list + "#{number}", "CHUNK", "", "", false, "those of a segment"},
	}
}

// KindOf tells the kind of the item with the key, or of most items of a
// partition when there is no sort key; "other" when no item has such a key.
func KindOf(pk, sk string) string {
	var first Form
	for _, f := range Chart() {
		if !matches(f.PK, pk) && (f.Type != typeJob || !matches(f.GSI1PK, pk)) {
			continue
		}
		if first.Kind == "" {
			first = f
		}
		if f.PK == first.PK && matches(f.SK, sk) {
			return f.Kind
		}
	}
	return cmp.Or(first.Kind, "other")
}

// Matches reports whether the key is one of the form's.
func (f *Form) Matches(pk, sk string) bool { return matches(f.PK, pk) && matches(f.SK, sk) }

// matches reports whether a key has one of a pattern's alternatives.
func matches(pattern, key string) bool {
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
