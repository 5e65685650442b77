package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A finished hour of a tally is an item of its own, under the endpoint, by
// time and shard. It is written once, with the tally that goes on without it.

// putHour is the write of an hour that the tally has finished.
func (t *db) putHour(w *webhook.CounterShardWrite) write {
	it := hourKey(w.OrganizationID, w.EndpointID, w.Finished.Start, w.Number).item()
	it[attrType], it[attrBody] = str(typeHour), binary(w.Finished.Encode())
	it[attrExpires] = num(w.Finished.Start.Add(webhook.HourRetention).Std().Unix())
	return write{Put: &types.Put{TableName: &t.name, Item: it}}
}

// Stats reads what the endpoint counted in each hour that starts in [from,
// to), the present one included, in the order of time. Hours without attempts
// are left out.
func (t *EndpointStore) Stats(ctx context.Context, org, endpoint value.ID, from, to value.Time) ([]*webhook.HourStats, error) {
	if from >= to {
		return nil, nil
	}
	// The tallies first: an hour that is finished meanwhile is then found
	// twice, with the name of the same shard, and not missed.
	stored, err := t.CounterShards(ctx, org, endpoint)
	if err != nil {
		return nil, err
	}
	shares := map[string]*webhook.HourStats{} // by start and shard
	for _, s := range stored {
		h := s.Shard.Hour()
		if h.Start >= from && h.Start < to && h.SuccessCount+h.FailureCount > 0 {
			shares[hourKey(org, endpoint, h.Start, s.Number).sk] = h
		}
	}
	in := partition(statsPartition(org, endpoint), "")
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :from AND :to")
	in.ExpressionAttributeValues[":from"] = str(from.String())
	in.ExpressionAttributeValues[":to"] = str(to.String())
	err = t.query(ctx, in, func(it item) (bool, error) {
		h, err := webhook.DecodeHourStats(getBinary(it, attrBody))
		if err != nil {
			return false, fmt.Errorf("%s of %s: %w", getString(it, attrSK), getString(it, attrPK), err)
		}
		shares[getString(it, attrSK)] = h
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return mergeHours(shares), nil
}

// mergeHours makes one hour of all shares with the same start.
func mergeHours(shares map[string]*webhook.HourStats) []*webhook.HourStats {
	merged := map[value.Time]*webhook.HourStats{}
	for _, share := range shares {
		if h := merged[share.Start]; h != nil {
			h.Merge(share)
		} else {
			merged[share.Start] = share
		}
	}
	hours := make([]*webhook.HourStats, 0, len(merged))
	for _, h := range merged {
		hours = append(hours, h)
	}
	slices.SortFunc(hours, func(a, b *webhook.HourStats) int {
		return cmp.Compare(a.Start, b.Start)
	})
	return hours
}
