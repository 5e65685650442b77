package commerce

import (
	"strconv"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a record. Text has no bound of its own but where one is given.
const (
	MaxRecordBytes = 128 << 10 // of the stored JSON
	maxNested      = 1_000     // elements of a list of objects, and coupon codes
	maxImages      = 100
	maxTags        = 250
	maxTagLength   = 255 // code points

	maxTaxRate value.Amount = 1_000 * value.AmountScale
)

// input is a record as a back office sends it. complete fills absent fields,
// reports mistakes to the draft and returns the GET shape.
type input interface {
	complete(d *draft) any
}

// draft collects the mistakes in a record and holds the values of its absent fields.
type draft struct {
	organization value.ID
	createdAt    value.Time // for a record that has none
	updatedAt    value.Time
	id           value.ID
	details      fault.Details
}

// read decodes and completes the record of a put.
func (d *draft) read(kind Kind, record jsontext.Value) (any, error) {
	in := kind.known().input()
	if err := strictjson.Unmarshal(record, in, strictjson.TrimText()); err != nil {
		return nil, err
	}
	r := in.complete(d)
	if !d.ok() {
		return nil, d.details.Err()
	}
	return r, nil
}

func (d *draft) ok() bool { return len(d.details) == 0 }

func (d *draft) refuse(field, code, format string, args ...any) {
	d.details.Add(fault.InBody, field, code, format, args...)
}

func (d *draft) require(field string, given bool) {
	if !given {
		d.refuse(field, fault.DetailRequired, "is required")
	}
}

// adopt checks the record's identifier and fills its organization, which may
// be absent but not another.
func (d *draft) adopt(id value.ID, organization *value.ID) {
	d.id = id
	d.require("id", !id.IsZero())
	if organization.IsZero() {
		*organization = d.organization
	}
	if *organization != d.organization {
		d.refuse("organizationId", fault.DetailNotAllowed, "must be %s, the organization of the message", d.organization)
	}
}

// derive fills an absent identifier, and refuses another than the derived one.
func (d *draft) derive(id *value.ID, derived value.ID) {
	if !id.IsZero() && *id != derived {
		d.refuse("id", fault.DetailNotAllowed, "must be absent or %s, which follows from the product, site and location", derived)
	}
	*id = derived
}

// nestedID derives an absent identifier from the record, the list and the
// position, so that a replay gives the same.
func (d *draft) nestedID(id *value.ID, list string, position int) {
	if id.IsZero() {
		*id = value.DeriveID(d.id, list+"/"+strconv.Itoa(position))
	}
}

func (d *draft) address(field string, a *Address) {
	if a != nil {
		d.nestedID(&a.ID, field, 0)
	}
}

// times returns the record's createdAt, given the one that was sent, and its
// updatedAt.
func (d *draft) times(created *value.Time) (createdAt, updatedAt value.Time) {
	return value.Or(created, d.createdAt), d.updatedAt
}

// count reports whether a list is within its bound.
func (d *draft) count(field string, n, most int) bool {
	if n > most {
		d.refuse(field, fault.DetailOutOfRange, "must have at most %d entries", most)
		return false
	}
	return true
}

// texts checks a list of text: its length, and that no element is blank.
func (d *draft) texts(field string, entries []string, most int) bool {
	if !d.count(field, len(entries), most) {
		return false
	}
	for i, s := range entries {
		if s == "" {
			d.refuse(at(field, i), fault.DetailFormat, "must not be blank")
		}
	}
	return true
}

func (d *draft) tags(tags []string) {
	if !d.texts("tags", tags, maxTags) {
		return
	}
	for i, tag := range tags {
		if utf8.RuneCountInString(tag) > maxTagLength {
			d.refuse(at("tags", i), fault.DetailOutOfRange, "must have at most %d characters", maxTagLength)
		}
	}
}

// nested checks the length of a list of objects and gives each its identifier.
func (d *draft) nested(list string, n int, id func(i int) *value.ID) bool {
	fits := d.count(list, n, maxNested)
	for i := range n {
		d.nestedID(id(i), list, i)
	}
	return fits
}

// at is the path of an element of a list.
func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func (d *draft) percent(field string, rate *value.Amount) {
	if rate != nil && (*rate < 0 || *rate > maxTaxRate) {
		d.refuse(field, fault.DetailOutOfRange, "must lie between 0 and %s percent", maxTaxRate)
	}
}

// notNegative refuses a price, stock level or quantity below 0. Records that were
// stored with one stay.
func (d *draft) notNegative(field string, a *value.Amount) {
	if a != nil && *a < 0 {
		d.refuse(field, fault.DetailOutOfRange, "must be 0 or more")
	}
}

func (d *draft) taxLines(lines []TaxLine) {
	if !d.count("taxLines", len(lines), maxNested) {
		return
	}
	for i, l := range lines {
		d.percent(at("taxLines", i)+".taxRate", l.TaxRate)
	}
}
