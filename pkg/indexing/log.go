package indexing

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/index"
)

// MaxEntry bounds an entry of the change log in bytes, well under the 400 KB
// of an item. A single document is smaller than index.MaxText and some.
const MaxEntry = 300 << 10

// entries packs documents, in their encoded form one behind the other, into
// as few entries as the bound allows. The time at which an entry was appended
// is the time at which its documents became visible.
func entries(documents []index.Document) [][]byte {
	var out [][]byte
	var current []byte
	for i := range documents {
		encoded := index.AppendDocument(nil, &documents[i])
		if len(current) > 0 && len(current)+len(encoded) > MaxEntry {
			out = append(out, current)
			current = nil
		}
		current = append(current, encoded...)
	}
	if len(current) > 0 {
		out = append(out, current)
	}
	return out
}

// readEntry decodes an entry's documents.
func readEntry(schema *index.Schema, body []byte) ([]index.Document, error) {
	var documents []index.Document
	for len(body) > 0 {
		document, rest, err := index.DecodeDocument(schema, body)
		if err != nil {
			return nil, fmt.Errorf("read an entry of the change log: %w", err)
		}
		documents = append(documents, document)
		body = rest
	}
	return documents, nil
}
