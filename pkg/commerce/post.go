package commerce

import (
	"slices"
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
	return MessageOfMany(organization, list), len(records), nil
}

// MessageOfMany is the message that brings the organization's records, a list.
func MessageOfMany(organization value.ID, records []byte) []byte {
	return slices.Concat([]byte(`{"organizationId":"`+organization.String()+`","records":`), ForQueue(records), []byte("}"))
}

// ForQueue escapes the two characters of JSON that SQS does not take, which makes the
// text longer.
func ForQueue(records []byte) []byte {
	return []byte(strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(string(records)))
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
	c := PostedRecord{OrganizationID: organization}
	err := strictjson.Unmarshal(raw, &c)
	if err == nil {
		err = (*Change)(&c).check()
	}
	return Change(c), err
}
