package bench

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/dynamo"
)

// items is how many different records are asked for by id.
const items = 1000

// measureItems is the section of records by id: what the service answers
// beside what the table itself does. The rounds alternate, so that both meet
// the same machine.
func measureItems(ctx context.Context, b *bench) error {
	s, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	keys, err := s.productKeys(ctx)
	if err != nil {
		return err
	}
	targets := make([]string, min(items, s.products))
	for i := range targets {
		targets[i] = "/api/products/" + s.shop.productID(i*s.products/len(targets)).String()
	}
	var alone, asked *Outcome
	for number := range b.cfg.Rounds {
		for _, load := range []struct {
			name string
			best **Outcome
			run  func() (*Outcome, error)
		}{
			{"table", &alone, func() (*Outcome, error) { return b.readTable(ctx, s, keys) }},
			{"item", &asked, func() (*Outcome, error) { return b.ask(ctx, s, targets, "identity", checkItem) }},
		} {
			var outcome *Outcome
			err := b.profiled(fmt.Sprintf("%s-%d", load.name, number+1), func() (err error) {
				outcome, err = load.run()
				return err
			})
			if err != nil {
				return err
			}
			*load.best = better(*load.best, outcome)
		}
	}
	t := b.table(fmt.Sprintf("Records by id, %s products, %d connections", thousands(s.products), connections), append(loadColumns(), "of the table's")...)
	t.note = b.howLoaded()
	t.add("the table alone: GetItem by the SDK, strongly consistent", "", append(rateOf(alone), "")...)
	t.add("GET /api/products/{id}, each a strongly consistent read", fmt.Sprintf("≥ %s/s, the table's less 20%%", thousands(int(alone.PerSecond()*0.8))),
		append(rateOf(asked), asked.of(alone))...)
	return nil
}

// readTable reads products from the table itself, strongly consistent, with
// as many workers as there are connections otherwise.
func (b *bench) readTable(ctx context.Context, s *service, keys []key) (*Outcome, error) {
	return drive(ctx, b.pace(), func(_ context.Context, number int) (request, func(), error) {
		next := number * len(keys) / connections
		return func(ctx context.Context) (int, error, error) {
			key := keys[next%len(keys)]
			next++
			out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.info.TableName, Key: key, ConsistentRead: aws.Bool(true)})
			if err != nil {
				return 0, nil, fmt.Errorf("read the table: %w", err)
			}
			doc, ok := out.Item["doc"].(*types.AttributeValueMemberS)
			if !ok {
				return 0, nil, fmt.Errorf("no product at %v", key)
			}
			return len(doc.Value), nil, nil
		}, func() {}, nil
	})
}

type key = map[string]types.AttributeValue

// productKeys finds the keys of some products in each of the partitions that
// they are spread over.
func (s *service) productKeys(ctx context.Context) ([]key, error) {
	var keys []key
	for shard := range dynamo.Shards {
		partition := fmt.Sprintf("ORG#%s#PRODUCT#%x", s.info.OrganizationID, shard)
		page, err := s.client.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.info.TableName, KeyConditionExpression: aws.String("PK = :shard"), ProjectionExpression: aws.String("PK, SK"),
			ExpressionAttributeValues: key{":shard": &types.AttributeValueMemberS{Value: partition}}, Limit: aws.Int32(items / dynamo.Shards),
		})
		if err != nil {
			return nil, fmt.Errorf("find products in the table: %w", err)
		}
		keys = append(keys, page.Items...)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the table has no products of %s", s.info.OrganizationID)
	}
	return keys, nil
}
