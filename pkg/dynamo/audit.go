package dynamo

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
)

// attrChangedBy is the entry that the item's last change makes in the audit trail.
// Writes that make none leave it as it is. An item that is removed cannot hold it:
// the entry of an application's or a grant's deletion is in the count of applications,
// which the same transaction changes.
const attrChangedBy = "changedBy"

// authored adds the entry of a change to the attributes that it writes; by is nil
// where the change makes none.
func authored(it item, by *account.AuditEntry) item {
	if by != nil {
		it[attrChangedBy] = encodeDoc(by)
	}
	return it
}

// AuditEntry returns the entry of the audit trail that a stream record makes, with
// the names of the fields that changed; nil when it makes none.
func (Stream) AuditEntry(r *events.DynamoDBEventRecord) (org value.ID, entry *account.AuditEntry, err error) {
	if _, found := r.Change.NewImage[attrChangedBy]; !found { // no record has one, and its images are large
		return org, nil, nil
	}
	old, next := imageItem(r.Change.OldImage), imageItem(r.Change.NewImage)
	text := getString(next, attrChangedBy)
	if text == "" || text == getString(old, attrChangedBy) {
		return org, nil, nil
	}
	if org, err = organizationOf(keyOf(next).pk); err != nil {
		return org, nil, err
	}
	entry = &account.AuditEntry{}
	if err := json.Unmarshal([]byte(text), entry); err != nil {
		return org, nil, err
	}
	entry.Fields, err = changedFields(old, next)
	return org, entry, err
}

// unshown are fields of items that the API does not show.
var unshown = []string{"updatedAt", "previousSecrets", "healthSince", "disabledReason", "alerts"}

// changedFields are the names of the fields that differ, as the API calls them,
// sorted; none of an item that is new or deleted.
func changedFields(old, next item) ([]string, error) {
	fields := []string{}
	was, err := fieldsOf(old)
	if err != nil || was == nil {
		return fields, err
	}
	is, err := fieldsOf(next)
	if err != nil || is == nil {
		return fields, err
	}
	if !reflect.DeepEqual(old["TokenScopes"], next["TokenScopes"]) {
		fields = append(fields, "scopes")
	}
	if !reflect.DeepEqual(old["Public"], next["Public"]) {
		fields = append(fields, "type")
	}
	both := maps.Clone(was)
	maps.Copy(both, is)
	for name := range both {
		if string(was[name]) != string(is[name]) && !slices.Contains(unshown, name) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields, nil
}

// fieldsOf are the fields of an item's doc, an endpoint's delivery settings beside
// its own; nil where it has no doc.
func fieldsOf(it item) (fields map[string]jsontext.Value, err error) {
	doc := getString(it, attrDoc)
	if doc == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(doc), &fields); err != nil {
		return nil, err
	}
	if settings := fields["delivery"]; settings != nil {
		delete(fields, "delivery")
		if err := json.Unmarshal(settings, &fields); err != nil { // adds to them
			return nil, err
		}
	}
	if thin := fields["thin"]; thin != nil {
		delete(fields, "thin")
		fields["payload"] = thin
	}
	return fields, nil
}

// PutAuditEntry stores an entry of the organization's audit trail. It may be stored
// already: a change makes the same entry each time.
func (t *Table) PutAuditEntry(ctx context.Context, org value.ID, entry *account.AuditEntry) error {
	it := docItem(auditKey(org, entry.ID), typeAudit, entry)
	it[attrExpires] = expiry(entry.At.Add(account.AuditRetention))
	_, _, err := t.putItem(ctx, "store an audit entry", t.put(it, always))
	return err
}

// maxAuditRead bounds what a page of the audit trail reads: entries of half a
// kilobyte, thus some 30 read units.
const maxAuditRead = 500

// AuditTrail reads the entries that the filter selects, the latest first, eventually
// consistent: at most limit of those before an id, or of all when that is zero. next
// is the id before which to go on, zero at the end. A page of a narrow filter may
// hold fewer than limit, even none, before the end.
func (t *Table) AuditTrail(ctx context.Context, org value.ID, f account.AuditFilter, before value.ID, limit int) (found []account.AuditEntry, next value.ID, err error) {
	first, last := firstAt(f.From), before
	if before.IsZero() {
		last = value.ID(bytes.Repeat([]byte{0xff}, len(last)))
	}
	if f.To != 0 && f.To <= last.Time() {
		last = firstAt(f.To)
	}
	if last.Compare(first) < 0 {
		return nil, next, nil
	}
	in := between(auditPartition(org), first.String(), last.String())
	in.ScanIndexForward, in.ConsistentRead, in.Limit = aws.Bool(false), nil, aws.Int32(maxAuditRead)
	if !f.Narrow() {
		in.Limit = aws.Int32(int32(limit) + 1) //nolint:gosec // bounded; the first may be before itself
	}
	items, end, err := t.queryPage(ctx, in)
	if err != nil {
		return nil, next, err
	}
	for _, it := range t.live(items) {
		entry, err := decodeDoc[account.AuditEntry](it)
		switch {
		case err != nil:
			return nil, next, err
		case entry.ID == before || !f.Selects(entry):
		case len(found) == limit:
			return found, found[limit-1].ID, nil
		default:
			found = append(found, *entry)
		}
	}
	if end == nil {
		return found, next, nil
	}
	next, err = value.ParseID(getString(end, attrSK))
	return found, next, err
}

// firstAt comes before every id of the time, and after those of earlier times.
func firstAt(at value.Time) value.ID { return value.TimedID(at, make([]byte, len(value.ID{}))) }
