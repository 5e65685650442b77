package commerce

import (
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
)

// PostRecordsDto is the body of a request that brings records: a message of many.
type PostRecordsDto struct {
	OrganizationID *value.ID      `json:"organizationId" required:"false" nullable:"false" doc:"The credential's organization. Absent: that one."`
	Records        []PostedRecord `json:"records" nullable:"false" minItems:"1" maxItems:"500" doc:"The changes, applied in order."`
}

// PostedRecord is one change of a [PostRecordsDto].
type PostedRecord struct {
	Kind    Kind           `json:"kind" doc:"The kind of the record: product, category, order, customer or invoice."`
	Op      Op             `json:"op" doc:"put replaces the whole record: an absent field takes its default. delete removes it and needs only the id."`
	Record  jsontext.Value `json:"record" doc:"The record, with its id, as the read API shows it; what that answers can be sent back. Required for a put: of a product or category its name; of an order orderNumber and currency; of an invoice currency, and invoiceNumber unless it is a DRAFT; of an item or line quantity, unitPrice, and name or description. Prices, stock levels and quantities are 0 or more; only a credit note's lines may have a negative quantity or unitPrice. Absent totals are computed. At most 128 KiB as stored."`
	SiteIDs []value.ID     `json:"siteIds" required:"false" maxItems:"1000" doc:"The sites that show the product; only for products. Empty or null: every site. Absent: the sites stay as they are."`
	Version *int64         `json:"version" required:"false" nullable:"false" minimum:"0" doc:"A number that increases with each change of the record, such as a row version. A number lower than the stored one changes nothing. Absent: the last message wins."`
	Silent  bool           `json:"silent" required:"false" doc:"Store and list the record without an event."`
}

// PostedMessage makes the message of many that brings the records of a
// request's body, and counts them. Its organization is the request's. A record
// whose kind, op, id or other member outside the record is wrong refuses the
// request, by the path of each of them, such as records[3].kind; [Apply] checks
// the rest of a record.
func PostedMessage(organization value.ID, body []byte) (message []byte, count int, err error) {
	members, err := splitObject(body)
	if err != nil {
		return nil, 0, explain("body", body, err)
	}
	list, given := members.get("records")
	if !given {
		return nil, 0, required("records")
	}
	own := []byte(`"` + organization.String() + `"`)
	if _, given := members.get("organizationId"); !given {
		members = append(members, member{"organizationId", own})
	}
	named, records, err := openMany(members)
	if err != nil {
		return nil, 0, err
	}
	if named != organization {
		return nil, 0, fault.Field(fault.InBody, "organizationId", fault.DetailNotAllowed, "must be %s, the organization of the credential", organization)
	}
	if err := checkPosted(organization, records); err != nil {
		return nil, 0, err
	}
	// SQS takes every character of JSON but these two.
	text := strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(string(list))
	return []byte(`{"organizationId":` + string(own) + `,"records":` + text + `}`), len(records), nil
}

// checkPosted names the faults outside the records.
func checkPosted(organization value.ID, records members) error {
	var details fault.Details
	for i, m := range records {
		c, err := readMember(organization, m.value)
		if err == nil {
			_, err = Identify(c)
		}
		if err == nil {
			continue
		}
		name := at("records", i)
		f, is := fault.As(under(name, err))
		if !is {
			return err
		}
		if len(f.Details) == 0 {
			f = fault.Field(fault.InBody, name, f.Code, "%s", f.Message)
		}
		details = append(details, f.Details...)
		if len(details) >= fault.MaxDetails {
			break
		}
	}
	return details.Err()
}

// readMember reads one record of a message of many.
func readMember(organization value.ID, raw jsontext.Value) (Change, error) {
	c := memberChange{OrganizationID: organization}
	err := strictjson.Unmarshal(raw, &c)
	if err == nil {
		err = (*Change)(&c).check()
	}
	return Change(c), err
}
