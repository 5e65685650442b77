package commerce

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxMessageRecords is the most records of a message.
	MaxMessageRecords = 500

	maxSites     = 1_000 // of a product
	maxReference = 120   // code points of a product's externalRef
)

// Change is one change that a back office sends, and the message of one record
// that says it. [Apply] checks its record.
type Change struct {
	OrganizationID value.ID       `json:"organizationId"`
	Kind           Kind           `json:"kind"`
	Op             Op             `json:"op"`
	Record         jsontext.Value `json:"record"`
	Sites          Sites          `json:"siteIds,omitzero"`
	ExternalRef    Reference      `json:"externalRef,omitzero"`
	Version        *int64         `json:"version,omitzero"` // nil when the sender has none
	Silent         bool           `json:"silent,omitzero"`  // stored and indexed, but no events
	// Arrived is when the message with the change was sent, by the queue's
	// clock; 0 when that is not known.
	Arrived value.Time `json:"-"`
	// LaterWins says that of equal versions the one that arrived later counts, as of
	// systems whose versions are times.
	LaterWins bool `json:"-"`
	// Position is the record's in a message of many, from 0, or [Alone].
	Position int `json:"-"`
}

// Alone is the position of a record in a message of one, and that of a message
// that was not divided into records.
const Alone = -1

// PostedRecord is a change as a message of many has it, and a [PostRecordsDto]: the
// organization is outside the records.
type PostedRecord struct {
	OrganizationID value.ID       `json:"-"`
	Kind           Kind           `json:"kind" doc:"The kind of the record: product, category, order, customer, invoice or stock."`
	Op             Op             `json:"op" doc:"put replaces the whole record: an absent field takes its default. delete removes it and needs only the id. adjust adds a delta to the onHand of a row of stock, and takes neither version nor silent."`
	Record         jsontext.Value `json:"record" doc:"The record, with its id, as the read API shows it; what that answers can be sent back. Required for a put: of a product or category its name; of an order orderNumber and currency; of an invoice currency, and invoiceNumber unless it is a DRAFT; of an item or line quantity, unitPrice, and name or description; of stock productId and onHand. For an adjust: productId, siteId, locationRef, delta, adjustmentId, which counts once in 24 hours for each row and has at most 120 characters, and min, below which onHand must not come; productId, delta and adjustmentId are required. Stock is known by its productId, siteId and locationRef and needs no id. Prices, stock levels and quantities are 0 or more; only a credit note's lines may have a negative quantity or unitPrice. Absent totals are computed. At most 128 KiB as stored."`
	Sites          Sites          `json:"siteIds" required:"false" maxItems:"1000" doc:"The sites that show the product; only for products. Empty or null: every site. Absent: the sites stay as they are."`
	ExternalRef    Reference      `json:"externalRef" required:"false" nullable:"true" maxLength:"120" doc:"The product's id in another system; only for products, which can be listed by it. Empty or null: none. Absent: it stays as it is."`
	Version        *int64         `json:"version" required:"false" nullable:"false" minimum:"0" doc:"A number that increases with each change of the record, such as a row version. A number lower than the stored one changes nothing. Absent: the last message wins."`
	Silent         bool           `json:"silent" required:"false" doc:"Store and list the record without an event."`
	Arrived        value.Time     `json:"-"`
	LaterWins      bool           `json:"-"`
	Position       int            `json:"-"`
}

// Beside is what a message may give beside its record. Given false means that it does
// not and the stored value stays; given and empty means none.
type Beside[T any] struct {
	Given bool
	Value T
}

type (
	// Sites is the siteIds of a message; none means every site.
	Sites = Beside[[]value.ID]
	// Reference is the externalRef of a message.
	Reference = Beside[string]
)

// MarshalJSONTo writes the value; an absent one is left out by omitzero.
func (b Beside[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, b.Value)
}

// UnmarshalJSONFrom accepts a value, or null for none.
func (b *Beside[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	b.Given = true
	return json.UnmarshalDecode(dec, &b.Value)
}

// sortedSites returns the set in its stored form: sorted, nil when empty.
func sortedSites(ids []value.ID) []value.ID {
	if len(ids) == 0 {
		return nil
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, value.ID.Compare)
	return slices.Compact(ids)
}

// Refusal is one record that cannot be applied, as it goes to the queue of
// refused records.
type Refusal struct {
	Reason  string // the fault's code
	Field   string // path from the top of the message: record.items[2].quantity; may be empty
	Message string // how to mend it
	Body    []byte // a message that holds the refused record alone
	// Position is the record's in a message of many, from 0, or [Alone].
	Position int
	// OrganizationID is the one that the message names, of a record that was
	// refused before there was a change.
	OrganizationID value.ID
}

// ParseMessage reads a message of one record or of many. It returns the
// changes in order, and a refusal for each record whose envelope is wrong. A
// body that cannot be divided into records is refused whole.
func ParseMessage(body []byte) ([]Change, []Refusal) {
	members, err := splitObject(body)
	if err != nil {
		return nil, refuseWhole(explain("message", body, err), body, nil)
	}
	if _, many := members.get("records"); many {
		return parseMany(body, members)
	}
	c := Change{Position: Alone}
	if err = strictjson.Unmarshal(body, &c); err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, refuseWhole(err, body, members)
	}
	return []Change{c}, nil
}

// refuseWhole refuses a message that was not divided into records.
func refuseWhole(err error, body []byte, members members) []Refusal {
	r := refusal(err, body)
	r.Position, r.OrganizationID = Alone, readable[value.ID](members, "organizationId")
	return []Refusal{r}
}

// Refuse makes the refusal of a change that [Apply] returned an error for.
func Refuse(c Change, err error) Refusal {
	r := refusal(err, c.Message())
	r.Position = c.Position
	return r
}

// About returns the kind and id of a refused record, as far as its text has
// them: a zero kind or id otherwise.
func (r Refusal) About() (kind Kind, id value.ID) {
	envelope, _ := splitObject(r.Body)
	if list, many := envelope.get("records"); many && r.Position != Alone {
		if records, _ := splitArray(list); len(records) == 1 {
			envelope, _ = splitObject(records[0].value)
		}
	}
	record, _ := envelope.get("record")
	members, _ := splitObject(record)
	return readable[Kind](envelope, "kind"), readable[value.ID](members, "id")
}

func refusal(err error, body []byte) Refusal {
	f, ok := fault.As(err)
	if !ok {
		return Refusal{Reason: fault.CodeValidation, Message: err.Error(), Body: body}
	}
	r := Refusal{Reason: f.Code, Message: f.Message, Body: body}
	if len(f.Details) > 0 {
		r.Field = f.Details[0].Field
	}
	return r
}

// Message is the message of one record that makes the change.
func (c Change) Message() []byte {
	body, err := json.Marshal(c, jsontext.AllowDuplicateNames(true))
	if err != nil {
		panic(fmt.Sprintf("commerce: a change is always JSON: %v", err))
	}
	return body
}

// check checks the fields outside the record; Apply checks the record. The order and
// repetitions of sites mean nothing, nor do blanks around a reference.
func (c *Change) check() error {
	c.Sites.Value, c.ExternalRef.Value = sortedSites(c.Sites.Value), strings.TrimSpace(c.ExternalRef.Value)
	switch {
	case c.OrganizationID.IsZero():
		return required("organizationId")
	case c.Kind == "":
		return required("kind")
	case c.Op == "":
		return required("op")
	case len(c.Record) == 0 || c.Record.Kind() == 'n':
		return required("record")
	case c.Record.Kind() != '{':
		return fault.Field(fault.InBody, "record", fault.DetailType, "must be an object")
	case c.Op == OpAdjust && c.Kind != KindStock:
		return fault.Field(fault.InBody, "op", fault.DetailNotAllowed, "adjust is for stock only")
	case c.Op == OpAdjust && c.Version != nil:
		return fault.Field(fault.InBody, "version", fault.DetailNotAllowed, "is not for adjust: adjustments add up, in any order")
	case c.Op == OpAdjust && c.Silent:
		return fault.Field(fault.InBody, "silent", fault.DetailNotAllowed, "is not for adjust: adjustments are stored together")
	case c.Version != nil && *c.Version < 0:
		return fault.Field(fault.InBody, "version", fault.DetailOutOfRange, "must be 0 or more")
	case c.Sites.Given && !c.Kind.known().sites:
		return fault.Field(fault.InBody, "siteIds", fault.DetailNotAllowed,
			"is for products only; another kind's site is its record's siteId")
	case len(c.Sites.Value) > maxSites:
		return fault.Field(fault.InBody, "siteIds", fault.DetailOutOfRange, "must have at most %d entries", maxSites)
	case c.ExternalRef.Given && !c.Kind.known().sites:
		return fault.Field(fault.InBody, columnReference, fault.DetailNotAllowed,
			"stands beside the record for products only; another kind has it in the record")
	case utf8.RuneCountInString(c.ExternalRef.Value) > maxReference:
		return fault.Field(fault.InBody, columnReference, fault.DetailOutOfRange, "must have at most %d characters", maxReference)
	}
	return nil
}

func required(field string) error {
	return fault.Field(fault.InBody, field, fault.DetailRequired, "is required")
}

// parseMany reads a message of many. Its records are taken one by one, so
// that a bad one leaves its neighbours alone.
func parseMany(body []byte, members members) ([]Change, []Refusal) {
	organization, records, err := openMany(members)
	if err != nil {
		return nil, refuseWhole(err, body, members)
	}
	changes := make([]Change, 0, len(records))
	var refusals []Refusal
	for i, m := range records {
		c, err := readMember(organization, m.value)
		c.Position = i
		if err != nil {
			r := refusal(err, single(organization, m.value))
			r.OrganizationID, r.Position = organization, i
			refusals = append(refusals, r)
			continue
		}
		changes = append(changes, c)
	}
	return changes, refusals
}

func openMany(members members) (organization value.ID, records members, err error) {
	seen := map[string]bool{}
	for _, m := range members {
		switch {
		case seen[m.name]:
			return organization, nil, fault.Field(fault.InBody, m.name, fault.DetailDuplicate, "must be given once")
		case m.name == "organizationId":
			err = under(m.name, strictjson.Unmarshal(m.value, &organization))
		case m.name == "records":
			if records, err = splitArray(m.value); err != nil {
				err = under(m.name, explain("message", m.value, err))
			}
		default:
			err = fault.Field(fault.InBody, m.name, fault.DetailUnknown, "is not a field of a message with records")
		}
		if err != nil {
			return organization, nil, err
		}
		seen[m.name] = true
	}
	if organization.IsZero() {
		return organization, nil, required("organizationId")
	}
	if len(records) < 1 || len(records) > MaxMessageRecords {
		return organization, nil, fault.Field(fault.InBody, "records", fault.DetailOutOfRange,
			"must have 1 to %d entries", MaxMessageRecords)
	}
	return organization, records, nil
}

// single makes a message that holds one record of a message of many: in the
// form of one record where that is possible, else in the form of many.
func single(organization value.ID, raw jsontext.Value) []byte {
	head := `{"organizationId":"` + organization.String() + `"`
	members, err := splitObject(raw)
	if err == nil && len(members) > 0 {
		_, clashes := members.get("organizationId")
		_, nested := members.get("records")
		if rest := bytes.TrimSpace(raw); !clashes && !nested {
			return append([]byte(head+","), rest[1:]...)
		}
	}
	return append(append([]byte(head+`,"records":[`), raw...), "]}"...)
}

// under puts a fault's fields under a parent field; another error, and nil,
// stay as they are.
func under(parent string, err error) error {
	f, ok := fault.As(err)
	if !ok || len(f.Details) == 0 {
		return err
	}
	details := slices.Clone(f.Details)
	for i := range details {
		if details[i].Field == "body" {
			details[i].Field = parent
		} else {
			details[i].Field = parent + "." + details[i].Field
		}
	}
	return fault.Validation(details...)
}
