package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A tally is an item beside the other tallies of the organization's
// endpoints: attrBody is its own form, rev rises by one with every write, and
// attrWrite is the mark of the transaction that wrote it last.

// Tally reads one of an endpoint's tallies, strongly consistent: an empty one
// of revision 0 when there is none.
func (t *EndpointStore) CounterShard(ctx context.Context, org, endpoint value.ID, shard int) (webhook.StoredCounterShard, error) {
	it, err := t.get(ctx, tallyKey(org, endpoint, shard))
	if err != nil {
		return webhook.StoredCounterShard{}, err
	}
	return decodeTally(it, shard)
}

// Tallies reads all tallies of an endpoint in the order of their shards,
// strongly consistent, in one query.
func (t *EndpointStore) CounterShards(ctx context.Context, org, endpoint value.ID) ([]webhook.StoredCounterShard, error) {
	var found []webhook.StoredCounterShard
	in := partition(countersPartition(org), endpoint.String()+"#")
	err := t.tallyQuery(ctx, in, func(_ value.ID, s webhook.StoredCounterShard) {
		found = append(found, s)
	})
	return found, err
}

func (t *EndpointStore) tallyQuery(ctx context.Context, in *dynamodb.QueryInput, each func(endpoint value.ID, s webhook.StoredCounterShard)) error {
	return t.query(ctx, in, func(it item) (bool, error) {
		id, shard, found := strings.Cut(getString(it, attrSK), "#")
		if !found || getString(it, attrType) != typeCounters {
			return true, nil // the endpoint's slots
		}
		endpoint, err := value.ParseID(id)
		if err != nil {
			return false, fmt.Errorf("the tally %s#%s: %w", id, shard, err)
		}
		s, err := decodeTally(it, strings.Index("0123456789abcdef", shard))
		each(endpoint, s)
		return true, err
	})
}

// Health reads how an endpoint does; since is what [webhook.HealthOf] takes.
func (t *EndpointStore) Health(ctx context.Context, org, endpoint value.ID, since, now value.Time) (webhook.Health, error) {
	stored, err := t.CounterShards(ctx, org, endpoint)
	if err != nil {
		return webhook.Health{}, err
	}
	return webhook.HealthOf(talliesOf(stored), since, now), nil
}

func talliesOf(stored []webhook.StoredCounterShard) []*webhook.CounterShard {
	tallies := make([]*webhook.CounterShard, len(stored))
	for i, s := range stored {
		tallies[i] = s.Shard
	}
	return tallies
}

// singleCounters is up to how many endpoints' counters are read one by one.
// Those of more are one query of what lies between the first and the last.
const singleCounters = 4

// Counters reads the counters of the endpoints; one that has counted nothing
// is zero.
func (t *EndpointStore) Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error) {
	tallies := make(map[value.ID][]*webhook.CounterShard, len(endpoints))
	var err error
	if len(endpoints) > singleCounters {
		err = t.talliesBetween(ctx, org, slices.MinFunc(endpoints, value.ID.Compare), slices.MaxFunc(endpoints, value.ID.Compare), tallies)
	} else {
		err = t.talliesEach(ctx, org, endpoints, tallies)
	}
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]webhook.Counters, len(endpoints))
	for _, id := range endpoints {
		found[id] = webhook.HealthOf(tallies[id], 0, value.TimeOf(t.now())).Counters
	}
	return found, nil
}

func (t *EndpointStore) talliesEach(ctx context.Context, org value.ID, endpoints []value.ID, into map[value.ID][]*webhook.CounterShard) error {
	found := make([][]webhook.StoredCounterShard, len(endpoints))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range endpoints {
		group.Go(func() (err error) {
			found[i], err = t.CounterShards(ctx, org, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, id := range endpoints {
		into[id] = talliesOf(found[i])
	}
	return nil
}

func (t *EndpointStore) talliesBetween(ctx context.Context, org, first, last value.ID, into map[value.ID][]*webhook.CounterShard) error {
	in := partition(countersPartition(org), "")
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :first AND :last")
	in.ExpressionAttributeValues[":first"] = str(first.String())
	in.ExpressionAttributeValues[":last"] = str(last.String() + "$") // behind every "#"
	return t.tallyQuery(ctx, in, func(endpoint value.ID, s webhook.StoredCounterShard) {
		into[endpoint] = append(into[endpoint], s.Shard)
	})
}

// putCounterShard is the write of the tally, on the condition that it still has the
// revision that it was read with.
func (t *db) putCounterShard(w *webhook.CounterShardWrite, mark uint64) write {
	it := tallyKey(w.OrganizationID, w.EndpointID, w.Number).item()
	it[attrType], it[attrBody], it[attrRevision], it[attrWrite] = str(typeCounters), binary(w.Next.Encode()), num(w.Revision+1), unsigned(mark)
	p := &types.Put{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if w.Revision > 0 {
		p.ConditionExpression = aws.String("rev = :rev")
		p.ExpressionAttributeValues = item{":rev": num(w.Revision)}
	}
	return write{Put: p}
}

// decodeTally returns an empty tally of revision 0 for what is absent.
func decodeTally(it item, shard int) (webhook.StoredCounterShard, error) {
	s := webhook.StoredCounterShard{Number: shard, Shard: &webhook.CounterShard{}}
	if it == nil {
		return s, nil
	}
	var err error
	if s.Shard, err = webhook.DecodeCounterShard(getBinary(it, attrBody)); err != nil {
		return s, fmt.Errorf("the tally %s of %s: %w", getString(it, attrSK), getString(it, attrPK), err)
	}
	s.Revision = getNumber(it, attrRevision)
	return s, nil
}
