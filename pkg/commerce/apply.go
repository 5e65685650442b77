package commerce

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Codes of a refusal in addition to those of package fault.
const (
	reasonVersionConflict = "version_conflict"
	reasonRecordTooLarge  = "record_too_large"
)

// Identify returns the identifier of a change's record, by which the stored
// record is read before [Apply]. The error is a refusal.
func Identify(c Change) (value.ID, error) {
	members, err := splitObject(c.Record)
	if err != nil {
		return value.ID{}, under("record", explain("message", c.Record, err))
	}
	var id, organization value.ID
	for _, field := range []struct {
		name string
		id   *value.ID
	}{{"id", &id}, {"organizationId", &organization}} {
		if raw, ok := members.get(field.name); ok {
			if err := strictjson.Unmarshal(raw, field.id); err != nil {
				return id, under("record."+field.name, err)
			}
		}
	}
	d := draft{organization: c.OrganizationID}
	if identify := c.Kind.known().identify; identify != nil {
		if err := identify(&d, &id, members); err != nil {
			return id, err
		}
	}
	if d.ok() {
		d.adopt(id, &organization)
	}
	if !d.ok() {
		return id, under("record", fault.Validation(d.details...))
	}
	return id, nil
}

// Apply applies a change to the stored record: nil when there never was one,
// a tombstone when it was deleted. It returns the record to store, or nil when
// there is nothing to write because the change was applied before or is older.
// An error that is a [fault.Error] refuses the change; any other means that
// the stored document cannot be read.
//
// Versions order the changes of a sender. A lower version than the stored one
// is skipped. An equal one with the same content does nothing, with other
// content is refused; a delete wins over a put of the same version, in
// whichever order they arrive. Where LaterWins is set, the later arrival of two
// equal versions wins instead. A change without a version is applied as it
// arrives, unless a change that was sent later has been applied, and leaves
// the stored version in force. A higher version with the same content is
// stored without a new revision: it blocks older changes and emits nothing.
func Apply(old *Stored, c Change, now value.Time) (next *Stored, err error) {
	if c.Op == OpDelete {
		return applyDelete(old, c, now)
	}
	return applyPut(old, c, now)
}

// revise starts the next revision of a record.
func revise(old *Stored, c Change, now value.Time) *Stored {
	next := &Stored{Kind: c.Kind, OrganizationID: c.OrganizationID, Revision: now, Version: c.Version, Silent: c.Silent, Arrived: c.Arrived}
	if old != nil {
		next.Revision = max(now, old.Revision+1)
		if next.Version == nil {
			next.Version = old.Version
		}
	}
	return next
}

// maxClockSkew is the least difference between the times of two messages that
// shows which was sent first: they come from the clocks of many hosts.
const maxClockSkew = time.Second

// age compares a change's version with the stored one: negative when the
// change is older, 0 when the versions are equal and no arrival decides. Without both
// versions the change is newer, unless it was sent before the stored one.
func age(old *Stored, c Change) int {
	switch {
	case old == nil:
		return 1
	case c.Version == nil && c.Arrived != 0 && c.Arrived.Add(maxClockSkew) < old.Arrived:
		return -1
	case old.Version == nil || c.Version == nil || *c.Version > *old.Version:
		return 1
	case *c.Version < *old.Version:
		return -1
	case c.LaterWins && c.Arrived < old.Arrived:
		return -1
	case c.LaterWins:
		return 1
	}
	return 0
}

func applyDelete(old *Stored, c Change, now value.Time) (*Stored, error) {
	id, err := Identify(c)
	if err != nil {
		return nil, err
	}
	if age(old, c) < 0 {
		return nil, nil
	}
	if old != nil && old.Deleted {
		return raiseVersion(old, c), nil
	}
	next := revise(old, c, now)
	next.ID, next.Deleted = id, true
	return next, nil
}

// raiseVersion stores a higher version of the same content under the same
// revision; without one there is nothing to write.
func raiseVersion(old *Stored, c Change) *Stored {
	if c.Version == nil || old.Version != nil && *c.Version <= *old.Version {
		return nil
	}
	next := *old
	next.Version, next.Silent = c.Version, c.Silent
	return &next
}

func applyPut(old *Stored, c Change, now value.Time) (*Stored, error) {
	next := revise(old, c, now)
	live := old != nil && !old.Deleted
	d := draft{organization: c.OrganizationID, createdAt: now, updatedAt: next.Revision}
	if live {
		created, err := createdAt(old)
		if err != nil {
			return nil, err
		}
		d.createdAt = created
	}
	r, err := d.read(c.Kind, c.Record)
	if err != nil {
		return nil, under("record", err)
	}
	switch newer := age(old, c); {
	case newer < 0, newer == 0 && (old.Deleted || old.Adjusted): // what was adjusted since is another's change
		return nil, nil
	}
	if next.Doc, err = encodeBounded(r); err != nil {
		return nil, err
	}
	next.ID, next.SiteIDs, next.ExternalRef = d.id, sortedSites(c.Sites.Value), c.ExternalRef.Value
	if live && !c.Sites.Given {
		next.SiteIDs = old.SiteIDs
	}
	if live && !c.ExternalRef.Given {
		next.ExternalRef = old.ExternalRef
	}
	if live && !old.Unpublished && sameContent(old, next) {
		return raiseVersion(old, c), nil
	}
	if age(old, c) == 0 {
		return nil, refused(fault.Conflict, reasonVersionConflict, "version",
			"%d is stored with other content; send a higher one", *c.Version)
	}
	return next, nil
}

// encodeBounded encodes a record that is small enough to be stored.
func encodeBounded(record any) ([]byte, error) {
	doc, err := Encode(record)
	if err == nil && len(doc) > MaxRecordBytes {
		err = refused(fault.Invalid, reasonRecordTooLarge, "record",
			"is %d bytes as stored JSON; at most %d are kept", len(doc), MaxRecordBytes)
	}
	return doc, err
}

// refused makes the refusal of a change as a whole.
func refused(kind fault.Kind, reason, field, format string, args ...any) error {
	f := fault.Field(fault.InBody, field, fault.DetailNotAllowed, format, args...)
	f.Kind, f.Code = kind, reason
	return f
}

// sameContent compares two live records without updatedAt, the last member.
func sameContent(a, b *Stored) bool {
	return sameBeside(a, b) && bytes.Equal(untimed(a.Doc), untimed(b.Doc))
}

// sameBeside compares what a message gives beside the record.
func sameBeside(a, b *Stored) bool {
	return slices.Equal(a.SiteIDs, b.SiteIDs) && a.ExternalRef == b.ExternalRef
}

// untimed is a document without its updatedAt, which is always as long as
// the form of a time.
func untimed(doc jsontext.Value) []byte {
	const tail = len(`"updatedAt":"2026-11-21T06:35:41.242Z"}`)
	return doc[:max(0, len(doc)-tail)]
}

// createdAt reads the createdAt of a stored document, which a put without one keeps.
func createdAt(s *Stored) (value.Time, error) {
	var t value.Time
	members, err := splitObject(s.Doc)
	if err != nil {
		return 0, fmt.Errorf("read a stored %s: %w", s.Kind, err)
	}
	raw, ok := members.get("createdAt")
	if !ok {
		return 0, fmt.Errorf("read a stored %s: it has no createdAt", s.Kind)
	}
	if err := t.UnmarshalText(bytes.Trim(raw, `"`)); err != nil {
		return 0, fmt.Errorf("read a stored %s: createdAt %s: %w", s.Kind, raw, err)
	}
	return t, nil
}
