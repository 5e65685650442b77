package importer

import (
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// check reads the record as the service will read it from the queue and
// applies it to nothing, so that what would be refused there for its content
// is refused here, with its line. Only what depends on the stored record, a
// conflict of versions, is left to the service.
func check(place Place, message []byte, now value.Time) error {
	changes, refusals := commerce.ParseMessage(message)
	for _, r := range refusals {
		return &Rejection{Place: place, Reason: r.Reason, Field: inRecord(r.Field), Message: strings.TrimPrefix(r.Message, r.Field+" ")}
	}
	for _, change := range changes {
		if _, err := commerce.Apply(nil, change, now); err != nil {
			bad := reject(place, err)
			bad.Field = inRecord(bad.Field)
			return bad
		}
	}
	return nil
}

// inRecord names a field as the row's author does, from the top of the record.
func inRecord(field string) string { return strings.TrimPrefix(field, "record.") }
