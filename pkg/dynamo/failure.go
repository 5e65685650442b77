package dynamo

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/api/failures"
	"github.com/commerce-integration/service/pkg/base/value"
)

// PutFailures stores failed requests of an application as the write of the number in
// the minute, unless there is one already.
func (t *Table) PutFailures(ctx context.Context, org, application value.ID, minute value.Time, number int, requests []failures.FailedRequest) (done bool, err error) {
	it := docItem(failuresKey(org, application, minute, number), typeFailures, requests)
	it[attrExpires] = expiry(minute.Add(failures.Retention))
	_, done, err = t.updateItem(ctx, "store failed requests", t.setItem(it, ifAbsent))
	return done, err
}

// Failures reads the application's last failed requests, the latest first, eventually
// consistent. It reads one page of at most 1 MB.
func (t *Table) Failures(ctx context.Context, org, application value.ID) ([]failures.FailedRequest, error) {
	in := partition(failuresPartition(org, application), "")
	in.ScanIndexForward, in.ConsistentRead, in.Limit = aws.Bool(false), nil, aws.Int32(failures.Shown)
	items, _, err := t.queryPage(ctx, in)
	if err != nil {
		return nil, err
	}
	all := []failures.FailedRequest{}
	for _, it := range t.live(items) {
		written, err := decodeDoc[[]failures.FailedRequest](it)
		if err != nil {
			return nil, err
		}
		all = append(all, *written...)
	}
	slices.SortStableFunc(all, func(a, b failures.FailedRequest) int { return int(b.At - a.At) })
	return all[:min(len(all), failures.Shown)], nil
}
