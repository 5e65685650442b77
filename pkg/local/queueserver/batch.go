package queueserver

import (
	"errors"
	"net/http"
)

const maxBatch = 10

// batchResult is the outcome of each entry of a batch.
type batchResult[T any] struct {
	Successful []T
	Failed     []batchFailure
}

type batchFailure struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string
}

// done is the result of an entry whose operation returns nothing.
type done struct {
	ID string `json:"Id"`
}

// add adds the result of one entry. An error of the protocol fails the entry only; add returns any other, which fails
// the request.
func (o *batchResult[T]) add(id string, ok T, err error) error {
	refusal := (*apiError)(nil)
	switch {
	case err == nil:
		o.Successful = append(o.Successful, ok)
	case errors.As(err, &refusal):
		senderFault := refusal.status < http.StatusInternalServerError
		o.Failed = append(o.Failed, batchFailure{ID: id, SenderFault: senderFault, Code: refusal.code, Message: refusal.message})
	default:
		return err
	}
	return nil
}

// checkBatch returns the error that makes a batch invalid as a whole.
func checkBatch[T any](entries []T, id func(*T) string) error {
	if len(entries) == 0 {
		return modelled("EmptyBatchRequest", "There should be at least one entry in the request.")
	}
	if len(entries) > maxBatch {
		return modelled("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(entries))
	}
	seen := map[string]bool{}
	for i := range entries {
		name := id(&entries[i])
		if name == "" || len(name) > 80 || !onlyNameCharacters(name) {
			return modelled("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores."+
				" It can be at most 80 letters long.")
		}
		if seen[name] {
			return modelled("BatchEntryIdsNotDistinct", "Id %s repeated.", name)
		}
		seen[name] = true
	}
	return nil
}
