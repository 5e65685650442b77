package webhook

import "github.com/commerce-integration/service/pkg/commerce"

// thinFields are the members of the event's object in a thin payload, besides its id.
func thinFields() []string { return []string{"updatedAt"} }

// Thin returns a payload that names its object instead of holding it: of the
// object only id and updatedAt are left, and nothing of previousAttributes.
// Everything else is as in the full payload. The receiver reads the object by
// its id.
func Thin(payload []byte) ([]byte, error) { return commerce.SelectFields(payload, thinFields()) }
