package eventsource

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// failedItems reads the identifiers in a function's partial batch response. No answer, null, {} and a null or empty list
// mean that nothing failed. An error means, as in Lambda, that the whole batch counts as failed: the answer is no such
// response, or an identifier is empty, null or missing.
func failedItems(answer []byte) ([]string, error) {
	if answer = bytes.TrimSpace(answer); len(answer) == 0 {
		return nil, nil
	}
	var response struct {
		BatchItemFailures []failure `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		return nil, fmt.Errorf("reading the batch item failures of the answer: %w", err)
	}
	return identifiers(response.BatchItemFailures, func(one failure) string { return one.ItemIdentifier })
}

type failure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// identifiers lists those of failures, none of which may be empty.
func identifiers[F any](failures []F, of func(F) string) ([]string, error) {
	ids := make([]string, len(failures))
	for i, one := range failures {
		if ids[i] = of(one); ids[i] == "" {
			return nil, errors.New("the answer has a batch item failure without an identifier")
		}
	}
	return ids, nil
}
