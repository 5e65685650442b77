package dynamo

import (
	"context"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
)

// RegisterOrganization adds an organization to the register that
// [Table.Organizations] reads. To add it again changes nothing, and costs
// one write unit.
func (t *Table) RegisterOrganization(ctx context.Context, org value.ID) error {
	_, _, err := t.putItem(ctx, "register an organization", t.put(organizationKey(org).newItem(typeOrganization), always))
	return err
}

// Organizations lists the registered organizations in the order of their ids,
// strongly consistent: one read unit for each 4 KB of the register, some sixty
// organizations. An organization is in the register once the indexer has seen
// a record or delivery of it; one that has only applications is not. None is
// ever removed.
func (t *Table) Organizations(ctx context.Context) ([]value.ID, error) {
	return collect(ctx, t, partition(organizationsPartition, ""), 0, func(it item) (value.ID, error) {
		org, err := value.ParseID(getString(it, attrSK))
		if err != nil {
			err = fmt.Errorf("a registered organization: %w", err)
		}
		return org, err
	})
}
