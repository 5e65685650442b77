package dynamo

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/value"
)

// Attribute names that more than one kind of item has.
const (
	attrPK      = "PK"
	attrSK      = "SK"
	attrGSI1PK  = "GSI1PK"
	attrGSI1SK  = "GSI1SK"
	attrType    = "t"
	attrDoc     = "doc"
	attrExpires = "expiresAtEpoch"

	gsi1 = "GSI1"
)

// Item types, the value of attribute t. Stream filters in template.yaml
// select by them.
const (
	typeRecord       = "rec"
	typeEvent        = "evt"
	typePayload      = "pay"
	typeApplication  = "app"
	typeEndpoint     = "end"
	typeRecovery     = "rcv"
	typeCount        = "cnt"
	typeKey          = "key"
	typeCredential   = "cred"
	typeCounters     = "ctr"
	typeSlots        = "slt"
	typeHour         = "hour"
	typeRate         = "rate"
	typeTail         = "tail"
	typeManifest     = "man"
	typeChunk        = "chk"
	typeJob          = "job"
	typeOrganization = "org"
)

// shards spreads one organization's records of a kind, and its webhook
// events, over this many partition keys.
const shards = 16

// key is the primary key of an item.
type key struct{ pk, sk string }

// keyOf is the key of an item that was read.
func keyOf(it item) key { return key{getString(it, attrPK), getString(it, attrSK)} }

// organizationOf is the organization whose partition the key names.
func organizationOf(pk string) (value.ID, error) {
	rest, found := strings.CutPrefix(pk, "ORG#")
	id, _, more := strings.Cut(rest, "#")
	if !found || !more {
		return value.ID{}, fmt.Errorf("the partition %q is no organization's", pk)
	}
	org, err := value.ParseID(id)
	if err != nil {
		return value.ID{}, fmt.Errorf("the partition %q: the organization %w", pk, err)
	}
	return org, nil
}

func shardOf(id value.ID) int {
	h := fnv.New32a()
	h.Write(id[:])
	return int(h.Sum32() % shards)
}

func recordPartition(org value.ID, kind string, shard int) string {
	return "ORG#" + org.String() + "#" + strings.ToUpper(kind) + "#" + hexDigit(shard)
}

// hexDigit writes the number of a shard, of which there are sixteen at most.
func hexDigit(n int) string { return "0123456789abcdef"[n : n+1] }

func recordKey(org value.ID, kind string, id value.ID) key {
	return key{recordPartition(org, kind, shardOf(id)), id.String()}
}

// eventKind stands where a record's kind stands in the key of a row of the
// webhook history.
const eventKind = "EVENT"

func eventKey(org, row value.ID) key { return recordKey(org, eventKind, row) }

func payloadKey(org, event value.ID) key {
	return key{"ORG#" + org.String() + "#PAYLOAD#" + event.String(), "PAYLOAD"}
}

// developerPartition holds an organization's applications, endpoints and
// recoveries, which are few and read together.
func developerPartition(org value.ID) string { return "ORG#" + org.String() + "#DEV" }

const (
	applicationPrefix = "APP#"
	endpointPrefix    = "ENDPOINT#"
	recoveryPrefix    = "RECOVERY#"
)

func applicationKey(org, id value.ID) key {
	return key{developerPartition(org), applicationPrefix + id.String()}
}

func endpointKey(org, id value.ID) key {
	return key{developerPartition(org), endpointPrefix + id.String()}
}

func recoveryKey(org, endpoint, id value.ID) key {
	return key{developerPartition(org), recoveryPrefix + endpoint.String() + "#" + id.String()}
}

func countKey(org value.ID) key { return key{developerPartition(org), "COUNT"} }

func apiKeyPartition(org, application value.ID) string {
	return "ORG#" + org.String() + "#KEYS#" + application.String()
}

func apiKeyKey(org, application, id value.ID) key {
	return key{apiKeyPartition(org, application), id.String()}
}

// credentialKey does not start from an organization: it is how a presented
// key finds its own.
func credentialKey(keyID string) key { return key{"KEY#" + keyID, "KEY"} }

// countersPartition holds the tallies and slots of an organization's
// endpoints.
func countersPartition(org value.ID) string { return "ORG#" + org.String() + "#COUNTERS" }

func tallyKey(org, endpoint value.ID, shard int) key {
	return key{countersPartition(org), endpoint.String() + "#" + hexDigit(shard)}
}

func slotsKey(org, endpoint value.ID) key {
	return key{countersPartition(org), endpoint.String() + "#SLOTS"}
}

// statsPartition holds the finished hours of an endpoint, of each of its
// tallies one, by time.
func statsPartition(org, endpoint value.ID) string {
	return "ORG#" + org.String() + "#STATS#" + endpoint.String()
}

func hourKey(org, endpoint value.ID, start value.Time, shard int) key {
	return key{statsPartition(org, endpoint), start.String() + "#" + hexDigit(shard)}
}

// organizationsPartition is the register of organizations, which an
// operator's command reads whole.
const organizationsPartition = "ORGANIZATIONS"

func organizationKey(org value.ID) key { return key{organizationsPartition, org.String()} }

func rateKey(subject string) key { return key{"RATE#" + subject, "RATE"} }

func tailPartition(org value.ID, list string) string {
	return "IDX#" + org.String() + "#" + list
}

const tailPrefix = "T#"

func tailKey(org value.ID, list string, sequence uint64) key {
	return key{tailPartition(org, list), fmt.Sprintf("%s%016x", tailPrefix, sequence)}
}

// manifestKey is the key of a list's manifest, and of the state of its
// rebuild, beside its tail.
func manifestKey(org value.ID, list, which string) key {
	return key{tailPartition(org, list), which}
}

// chunkKey gives each chunk a partition key of its own, so that reading many
// at a time is spread over the table.
func chunkKey(org value.ID, list string, slot uint64) key {
	return key{chunkPrefix(org, list) + strconv.FormatUint(slot, 16), "CHUNK"}
}

func chunkPrefix(org value.ID, list string) string { return tailPartition(org, list) + "#" }

func jobKey(org value.ID, list string) key { return key{tailPartition(org, list), "JOB"} }

// jobPartition holds the jobs of lists by the time from which one may run.
func jobPartition(org value.ID, list string) string {
	h := fnv.New32a()
	h.Write(org[:])
	h.Write([]byte(list))
	return jobShard(int(h.Sum32() % JobShards))
}

func jobShard(shard int) string { return "JOB#" + hexDigit(shard) }

// jobSort orders a partition of jobs by time, then by list.
func jobSort(at value.Time, org value.ID, list string) string {
	return timedSort(at, org) + "#" + list
}

// duePartition holds the rows whose next attempt lies further ahead than a
// queue can wait, by time.
func duePartition(shard int) string { return "DUE#" + hexDigit(shard) }

// unsentPartition holds an endpoint's rows that are HELD or FAILED, except
// those that its circuit holds, which lie in heldPartition: who sends them
// does not have to look for them among all the others.
func unsentPartition(endpoint value.ID) string { return "UNSENT#" + endpoint.String() }

func heldPartition(endpoint value.ID) string { return "HELD#" + endpoint.String() }

// timedSort orders a GSI1 partition by time, then by row.
func timedSort(at value.Time, id value.ID) string { return at.String() + "#" + id.String() }
