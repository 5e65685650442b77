package queueserver

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

const maxBatch = 10

// checkBatch returns the error that makes a batch invalid as a whole.
func checkBatch[T any](entries []T, id func(*T) *string) error {
	if len(entries) == 0 {
		return &types.EmptyBatchRequest{Message: aws.String("There should be at least one entry in the request.")}
	}
	if len(entries) > maxBatch {
		return &types.TooManyEntriesInBatchRequest{Message: aws.String(fmt.Sprintf("Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(entries)))}
	}
	seen := map[string]bool{}
	for i := range entries {
		name := aws.ToString(id(&entries[i]))
		if seen[name] {
			return &types.BatchEntryIdsNotDistinct{Message: aws.String("Id " + name + " repeated.")}
		}
		seen[name] = true
	}
	return nil
}

// each acts on the entries of a batch one by one. One that is refused fails alone.
func each[E, R any](entries []E, id func(*E) *string, act func(*E) (R, error)) (done []R, failed []types.BatchResultErrorEntry, err error) {
	if err := checkBatch(entries, id); err != nil {
		return nil, nil, err
	}
	for i := range entries {
		result, err := act(&entries[i])
		if err == nil {
			done = append(done, result)
			continue
		}
		var api smithy.APIError
		errors.As(err, &api) // operations on one message fail only so
		failed = append(failed, types.BatchResultErrorEntry{
			Id: id(&entries[i]), SenderFault: true, Code: aws.String(api.ErrorCode()), Message: aws.String(api.ErrorMessage()),
		})
	}
	return done, failed, nil
}
