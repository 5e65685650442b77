package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/value"
)

// RegisterOrganization enters an organization into the register that
// [IndexStore.Organizations] reads. To enter it again changes nothing, and costs
// one write unit.
func (t *IndexStore) RegisterOrganization(ctx context.Context, org value.ID) error {
	it := organizationKey(org).item()
	it[attrType] = str(typeOrganization)
	if _, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: it}); err != nil {
		return wrap("register an organization", err)
	}
	return nil
}

// Organizations lists the registered organizations in the order of their ids,
// strongly consistent: one read unit for each 4 KB of the register, which is
// some sixty organizations. It does not know an organization nothing of which
// ever reached the indexer, such as one that has only applications so far.
// None is taken off the register.
func (t *IndexStore) Organizations(ctx context.Context) ([]value.ID, error) {
	var found []value.ID
	err := t.query(ctx, partition(organizationsPartition, ""), func(it item) (bool, error) {
		org, err := value.ParseID(getString(it, attrSK))
		if err != nil {
			return false, fmt.Errorf("a registered organization: %w", err)
		}
		found = append(found, org)
		return true, nil
	})
	return found, err
}
