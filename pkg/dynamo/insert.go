package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
)

// Items that must not replace others are created in batches by PartiQL's
// INSERT: the only conditional write that is batched and whose items succeed
// or fail one by one. It consumes what a put does, a unit for each KB.
const (
	maxInsertItems    = 25
	maxInsertBytes    = 1 << 20 // of a batch, by the items' sizes
	maxInsertParallel = 4       // batches at a time
	maxInsertTries    = 10      // with the pauses up to two seconds
)

// errRefused is the error of an INSERT whose key is taken.
var errRefused = errors.New("the key is taken")

// insert creates the items whose keys are free, in batches, so many at a time. It
// returns an error for each: nil when it is created, and errRefused when its key
// is taken; of two with the same key that is the second. An item whose creation
// was not answered may be reported as taken.
func (t *Table) insert(ctx context.Context, tried string, items []item, atATime int) []error {
	errs := make([]error, len(items))
	var batches [][]int
	seen, room := make(map[key]bool, len(items)), 0
	for i, it := range items {
		if seen[keyOf(it)] {
			errs[i] = errRefused
			continue
		}
		seen[keyOf(it)] = true
		last, size := len(batches)-1, itemSize(it)
		if last < 0 || len(batches[last]) == maxInsertItems || size > room {
			batches, last, room = append(batches, nil), last+1, maxInsertBytes
		}
		batches[last], room = append(batches[last], i), room-size
	}
	parallel.Each(atATime, slices.All(batches), func(_ int, batch []int) { t.insertBatch(ctx, tried, items, batch, errs) })
	return errs
}

// insertBatch creates the items at some positions together, each on its own, and
// repeats what the table throttled or failed at. It sets the errors of those that
// are not created.
func (t *Table) insertBatch(ctx context.Context, tried string, items []item, left []int, errs []error) {
	err := retry.Contended(ctx, maxInsertTries, func() (done bool, err error) {
		statements := make([]types.BatchStatementRequest, len(left))
		for i, at := range left {
			statements[i] = t.insertion(items[at])
		}
		out, err := t.client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: statements})
		if err != nil {
			return false, wrap(tried, err)
		}
		if len(out.Responses) != len(left) {
			return false, fault.Busy(fmt.Errorf("%s: %d answers to %d statements", tried, len(out.Responses), len(left)))
		}
		var again []int
		for i, at := range left {
			refusal := out.Responses[i].Error
			switch {
			case refusal == nil:
			case throttles[string(refusal.Code)]:
				again = append(again, at)
			case refusal.Code == types.BatchStatementErrorCodeEnumDuplicateItem, refusal.Code == types.BatchStatementErrorCodeEnumConditionalCheckFailed:
				errs[at] = errRefused
			default:
				errs[at] = fmt.Errorf("%s: %s: %s", tried, refusal.Code, aws.ToString(refusal.Message))
			}
		}
		left = again
		return len(left) == 0, nil
	})
	for _, at := range left {
		errs[at] = err
	}
}

// insertion is the statement that creates an item, its key first.
func (t *Table) insertion(it item) types.BatchStatementRequest {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(it)), func(name string) bool { return name == attrPK || name == attrSK })
	names = append([]string{attrPK, attrSK}, names...)
	values := make([]types.AttributeValue, len(names))
	for i, name := range names {
		values[i] = it[name]
	}
	statement := `INSERT INTO "` + t.name + `" VALUE {'` + strings.Join(names, `': ?, '`) + `': ?}`
	return types.BatchStatementRequest{Statement: &statement, Parameters: values}
}

// Bytes of an item, about: of each site, and of all but its body and sites.
const (
	siteBytes      = 40
	insertOverhead = 256
)

// itemSize is the bytes of an item, about.
func itemSize(it item) int {
	size := insertOverhead
	for _, v := range it {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberL:
			size += siteBytes * len(v.Value)
		}
	}
	return size
}
