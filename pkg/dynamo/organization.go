package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/value"
)

// scanSegments are the parts of the table that are read side by side.
const scanSegments = 8

// Organizations lists every organization that the table holds anything of,
// the index of its lists included, in the order of their ids. There is no
// register of them: this reads the keys of the whole table, which costs what
// reading the table costs (half a read unit for each 4 KB of it), and is for
// operators' commands only. It is eventually consistent.
func (t *Table) Organizations(ctx context.Context) ([]value.ID, error) {
	var mu sync.Mutex
	found := map[value.ID]bool{}
	group, ctx := errgroup.WithContext(ctx)
	for segment := range scanSegments {
		group.Go(func() error {
			seen, err := t.scanOrganizations(ctx, segment)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(found, seen)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b value.ID) int { return slices.Compare(a[:], b[:]) }), nil
}

// scanOrganizations reads the partition keys of one segment of the table.
func (t *Table) scanOrganizations(ctx context.Context, segment int) (map[value.ID]bool, error) {
	found := map[value.ID]bool{}
	pages := dynamodb.NewScanPaginator(t.client, &dynamodb.ScanInput{
		TableName: &t.name, ProjectionExpression: aws.String(attrPK),
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(scanSegments), //nolint:gosec // a few
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, wrap("look for organizations", err)
		}
		for _, it := range page.Items {
			org, has, err := organizationIn(getString(it, attrPK))
			if err != nil {
				return nil, err
			}
			if has {
				found[org] = true
			}
		}
	}
	return found, nil
}

// organizationIn reads the organization from a partition key. What starts
// from something else, such as a presented API key, has none.
func organizationIn(pk string) (org value.ID, has bool, err error) {
	kind, rest, _ := strings.Cut(pk, "#")
	if kind != "ORG" && kind != "IDX" {
		return value.ID{}, false, nil
	}
	text, _, _ := strings.Cut(rest, "#")
	if org, err = value.ParseID(text); err != nil {
		return value.ID{}, false, fmt.Errorf("the organization of the key %q: %w", pk, err)
	}
	return org, true, nil
}
