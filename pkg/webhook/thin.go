package webhook

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
)

// thinObject is what a thin payload has of the event's object.
type thinObject struct {
	ID        jsontext.Value `json:"id,omitzero"`
	UpdatedAt jsontext.Value `json:"updatedAt,omitzero"`
}

// Thin returns a payload that names its object instead of holding it: of the
// object only id and updatedAt are left, and previousAttributes is null.
// Everything else is as in the full payload. The receiver reads the object by
// its id.
func Thin(payload []byte) ([]byte, error) {
	var full commerce.WebhookPayload
	var object thinObject
	if err := json.Unmarshal(payload, &full); err != nil {
		return nil, fmt.Errorf("read a payload: %w", err)
	}
	if err := json.Unmarshal(full.Data.Object, &object); err != nil {
		return nil, fmt.Errorf("read the object of event %s: %w", full.ID, err)
	}
	thin, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object of event %s: %w", full.ID, err)
	}
	full.Data = commerce.WebhookData{Object: thin, PreviousAttributes: jsontext.Value("null")}
	return full.Encode()
}
