package dynamo

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
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
	typeDelivery     = "evt"
	typePayload      = "pay"
	typeApplication  = "app"
	typeEndpoint     = "end"
	typeRecovery     = "rcv"
	typeCount        = "cnt"
	typeKey          = "key"
	typeCredential   = "cred"
	typeClient       = "cli"
	typeSigningKeys  = "sgn"
	typeGrant        = "grt"
	typeUserGrant    = "ugr"
	typeCounters     = "ctr"
	typePermits      = "slt"
	typeHour         = "hour"
	typeFiltered     = "flt"
	typeRate         = "rate"
	typeWaits        = "waits"
	typeRequest      = "req"
	typeReceipt      = "rcp"
	typeRequestDay   = "reqday"
	typeEventDay     = "evtday"
	typeTail         = "tail"
	typeManifest     = "man"
	typeChunk        = "chk"
	typeJob          = "job"
	typeActivity     = "act"
	typeOrganization = "org"
	typeHeartbeat    = "beat"
	typeAudit        = "aud"
	typeFailures     = "fail"
	typeFields       = "fld"
	typeSource       = "src"
	typeSourceOrg    = "srcorg"
	typeShopObject   = "obj"
	typeShopItem     = "itm"
	typeLedger       = "led"
	typeAdjustment   = "adj"
)

// Shards is the number of partition keys of an organization's records of a kind, of
// its deliveries, of an endpoint's unsent ones, of due marks and of jobs.
const Shards = 16

// key is the primary key of an item.
type key struct{ pk, sk string }

func (k key) item() item { return item{attrPK: str(k.pk), attrSK: str(k.sk)} }

// newItem is an item of the type, with nothing but its key.
func (k key) newItem(itemType string) item {
	return item{attrPK: str(k.pk), attrSK: str(k.sk), attrType: str(itemType)}
}

// keyOf is the key of an item that was read.
func keyOf(it item) key { return key{getString(it, attrPK), getString(it, attrSK)} }

// organizationOf is the organization whose partition the key names.
func organizationOf(pk string) (value.ID, error) {
	org, _, err := ownerOf(pk, "ORG#")
	return org, err
}

// ownerOf is the organization that a partition key names behind the prefix, and the
// rest of the key.
func ownerOf(pk, prefix string) (org value.ID, rest string, err error) {
	named, found := strings.CutPrefix(pk, prefix)
	id, rest, more := strings.Cut(named, "#")
	if !found || !more {
		return org, "", fmt.Errorf("the partition %q is not an organization's", pk)
	}
	if org, err = value.ParseID(id); err != nil {
		err = fmt.Errorf("the partition %q: the organization %w", pk, err)
	}
	return org, rest, err
}

// lastPart is the part of a key behind the last separator.
func lastPart(key string) string { return key[strings.LastIndexByte(key, '#')+1:] }

func shardOf(id value.ID) int {
	h := fnv.New32a()
	h.Write(id[:])
	return int(h.Sum32() % Shards)
}

func recordPartition(org value.ID, kind string, shard int) string {
	return "ORG#" + org.String() + "#" + strings.ToUpper(kind) + "#" + hexDigit(shard)
}

// hexDigit writes the number of a shard, below 16.
func hexDigit(n int) string { return strconv.FormatInt(int64(n), 16) }

func recordKey(org value.ID, kind string, id value.ID) key {
	return key{recordPartition(org, kind, shardOf(id)), id.String()}
}

// stockPartition holds the ledger and the adjustments of a row of stock, apart from the
// records, which are read by the shard.
func stockPartition(org, id value.ID) string { return "ORG#" + org.String() + "#STOCK#" + id.String() }

func ledgerKey(org, id value.ID) key { return key{stockPartition(org, id), "LEDGER"} }

func adjustmentKey(org, id value.ID, name string) key {
	return key{stockPartition(org, id), "ADJUSTMENT#" + name}
}

// deliveryKind takes the place of a record's kind in the keys of deliveries.
const deliveryKind = "EVENT"

func deliveryKey(org, id value.ID) key { return recordKey(org, deliveryKind, id) }

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
	sourcePrefix      = "SOURCE#"
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

// sourcesPartition holds an organization's sources and their count. The function that
// answers for them, which takes requests without a principal, cannot reach the
// applications and endpoints.
func sourcesPartition(org value.ID) string { return "ORG#" + org.String() + "#SOURCES" }

func sourceKey(org, id value.ID) key { return key{sourcesPartition(org), sourcePrefix + id.String()} }

func sourceCountKey(org value.ID) key { return key{sourcesPartition(org), "COUNT"} }

// sourceOrganizationKey does not start with an organization: a shop sends to the id of
// its source alone.
func sourceOrganizationKey(id value.ID) key { return key{sourcePrefix + id.String(), "SOURCE"} }

// shopKey gives each object and inventory item of a source's shop a partition key
// of its own.
func shopKey(org, source value.ID, kind, id string) key {
	return key{"ORG#" + org.String() + "#SHOP#" + source.String() + "#" + kind + "#" + id, "STATE"}
}

// grantsPartition holds the grants to an application.
func grantsPartition(org, application value.ID) string {
	return developerPartition(org) + "#GRANTS#" + application.String()
}

func grantKey(org, application, id value.ID) key {
	return key{grantsPartition(org, application), id.String()}
}

// userGrantsPartition holds what the API shows of a user's grants, by application.
func userGrantsPartition(org, user value.ID) string {
	return developerPartition(org) + "#USER#" + user.String()
}

func userGrantKey(g *account.Grant) key {
	return key{userGrantsPartition(g.OrganizationID, g.UserID), g.ApplicationID.String() + "#" + g.ID.String()}
}

func countKey(org value.ID) key { return key{developerPartition(org), "COUNT"} }

func apiKeyPartition(org, application value.ID) string {
	return "ORG#" + org.String() + "#KEYS#" + application.String()
}

func apiKeyKey(org, application, id value.ID) key {
	return key{apiKeyPartition(org, application), id.String()}
}

// credentialKey does not start with an organization: a presented key is looked
// up before its organization is known.
func credentialKey(keyID string) key { return key{"KEY#" + keyID, "KEY"} }

// clientKey does not either: a client presents its id alone.
func clientKey(clientID value.ID) key { return key{"CLIENT#" + clientID.String(), "CLIENT"} }

// signingKeysKey is the one item of public keys.
func signingKeysKey() key { return key{"SIGNING", "KEYS"} }

// senderKeysKey is the item of an organization's sender keys, which nothing
// writes: see [Table.ReadRecords].
func senderKeysKey(org value.ID) key { return key{"ORG#" + org.String() + "#SENDERS", "KEYS"} }

// tallyKey gives each endpoint's tally a partition key of its own: one takes 1,000
// write units a second.
func tallyKey(org, endpoint value.ID) key {
	return key{permitsPartition(org) + "#" + endpoint.String(), "TALLY"}
}

// permitsPartition holds the permits of an organization's endpoints, which
// workers write once in a lease.
func permitsPartition(org value.ID) string { return "ORG#" + org.String() + "#COUNTERS" }

func permitsKey(org, endpoint value.ID) key {
	return key{permitsPartition(org), endpoint.String() + "#SLOTS"}
}

// statsPartition holds the finished hours of an endpoint by time.
func statsPartition(org, endpoint value.ID) string {
	return "ORG#" + org.String() + "#STATS#" + endpoint.String()
}

func hourKey(org, endpoint value.ID, start value.Time) key {
	return key{statsPartition(org, endpoint), start.String()}
}

// filteredPartition holds the hours in which an endpoint's delivery settings
// kept events from it, by time.
func filteredPartition(org, endpoint value.ID) string {
	return statsPartition(org, endpoint) + "#FILTERED"
}

func filteredKey(org, endpoint value.ID, start value.Time) key {
	return key{filteredPartition(org, endpoint), start.String()}
}

// organizationsPartition is the register of organizations.
const organizationsPartition = "ORGANIZATIONS"

func organizationKey(org value.ID) key { return key{organizationsPartition, org.String()} }

// heartbeatKey is the one item of the heartbeat.
func heartbeatKey() key { return key{"HEARTBEAT", "HEARTBEAT"} }

// requestKey gives each request a partition key of its own.
func requestKey(k idempotency.Key) key {
	return key{"ORG#" + k.Organization.String() + "#REQUEST#" + k.Hash, "REQUEST"}
}

// receiptKind takes the place of a record's kind in the keys of receipts, whose
// order is that of their time.
const receiptKind = "RECEIPT"

func receiptKey(org, id value.ID) key { return recordKey(org, receiptKind, id) }

// auditPartition holds an organization's audit trail in the order of time.
func auditPartition(org value.ID) string { return "ORG#" + org.String() + "#AUDIT" }

func auditKey(org, id value.ID) key { return key{auditPartition(org), id.String()} }

// ratePartition holds a subject's rate window, and behind it the days that it
// has counted.
func ratePartition(subject string) string { return "RATE#" + subject }

func rateKey(subject string) key { return key{ratePartition(subject), "RATE"} }

// failuresPartition holds an application's failed requests by time, among the rate
// windows, which every function of the API may write.
func failuresPartition(org, application value.ID) string {
	return ratePartition(org.String() + "#failed#" + application.String())
}

func failuresKey(org, application value.ID, minute value.Time, number int) key {
	return key{failuresPartition(org, application), minute.String() + "#" + strconv.Itoa(number)}
}

// waitsKey is beside the rate window of the organization.
func waitsKey(org value.ID) key { return key{ratePartition(org.String() + "#organization"), "LEASES"} }

const requestDayPrefix = "USAGE#"

func requestDayKey(subject, date string) key {
	return key{ratePartition(subject), requestDayPrefix + date}
}

// eventDaysPartition holds the finished days of an application's endpoints.
func eventDaysPartition(org, application value.ID) string {
	return "ORG#" + org.String() + "#USAGE#" + application.String()
}

func eventDayKey(org, application, endpoint value.ID, day value.Time) key {
	return key{eventDaysPartition(org, application), dateOf(day) + "#" + endpoint.String()}
}

func dateOf(day value.Time) string { return day.Std().Format(time.DateOnly) }

func tailPartition(org value.ID, list string) string { return "IDX#" + org.String() + "#" + list }

const tailPrefix = "T#"

func tailKey(org value.ID, list string, sequence uint64) key {
	return key{tailPartition(org, list), fmt.Sprintf("%s%016x", tailPrefix, sequence)}
}

// manifestPrefix is how the names of live manifests begin, in every layout.
const manifestPrefix = "MANIFEST"

// manifestKey is the key of a list's manifest, or of the state of its rebuild,
// in the partition of its tail.
func manifestKey(org value.ID, list, which string) key { return key{tailPartition(org, list), which} }

// chunkKey gives each chunk a partition key of its own, so that reading many
// at a time is spread over the table.
func chunkKey(org value.ID, list string, number uint64) key {
	return key{tailPartition(org, list) + "#" + strconv.FormatUint(number, 16), "CHUNK"}
}

func jobKey(org value.ID, list string) key { return key{tailPartition(org, list), "JOB"} }

// activityKey has a partition of its own among those of the lists.
func activityKey(org value.ID) key { return key{tailPartition(org, "activity"), "ACTIVITY"} }

// fieldsKey too.
func fieldsKey(org value.ID) key { return key{tailPartition(org, "fields"), "FIELDS"} }

// jobPartition holds the jobs of lists by the time from which one may run.
func jobPartition(org value.ID, list string) string {
	h := fnv.New32a()
	h.Write(org[:])
	h.Write([]byte(list))
	return jobShard(int(h.Sum32() % Shards))
}

func jobShard(shard int) string { return "JOB#" + hexDigit(shard) }

// duePartition holds the items that have a due mark, by time.
func duePartition(shard int) string { return "DUE#" + hexDigit(shard) }

// The deliveries that an endpoint's circuit holds are under heldPrefix, so that a
// drain reads no others. Its other HELD and FAILED ones are under unsentPrefix.
const (
	unsentPrefix = "UNSENT#"
	heldPrefix   = "HELD#"
)

// unsentPartition holds a shard of an endpoint's deliveries under one of these
// prefixes, by time. A partition key takes 1,000 write units a second, and what
// GSI1 refuses the table refuses.
func unsentPartition(prefix string, endpoint value.ID, shard int) string {
	return prefix + endpoint.String() + "#" + hexDigit(shard)
}

// timedSort orders a GSI1 partition by time, then by id.
func timedSort(at value.Time, id value.ID) string { return at.String() + "#" + id.String() }
