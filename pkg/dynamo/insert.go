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

// errRefused is the error of a statement whose condition does not hold, and of an
// INSERT whose key is taken.
var errRefused = errors.New("a condition does not hold")

// insert creates the items whose keys are free, in batches, so many at a time. It
// returns an error for each: nil when it is created, and errRefused when its key
// is taken; of two with the same key that is the second. An item whose creation
// was not answered may be reported as taken.
func (t *Table) insert(ctx context.Context, tried string, items []item, atATime int) []error {
	errs, statements := make([]error, len(items)), make([]types.BatchStatementRequest, len(items))
	var batches [][]int
	seen, size := make(map[key]bool, len(items)), 0
	for i, it := range items {
		if seen[keyOf(it)] {
			errs[i] = errRefused
			continue
		}
		seen[keyOf(it)], statements[i] = true, t.insertion(it)
		more := itemSize(it)
		if last := len(batches) - 1; last < 0 || len(batches[last]) == maxInsertItems || size+more > maxInsertBytes {
			batches, size = append(batches, nil), 0
		}
		last := len(batches) - 1
		batches[last], size = append(batches[last], i), size+more
	}
	parallel.Each(atATime, slices.All(batches), func(_ int, batch []int) {
		for i, err := range t.execute(ctx, tried, maxInsertTries, picked(statements, batch)) {
			errs[batch[i]] = err
		}
	})
	return errs
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

func picked(statements []types.BatchStatementRequest, which []int) []types.BatchStatementRequest {
	some := make([]types.BatchStatementRequest, len(which))
	for i, at := range which {
		some[i] = statements[at]
	}
	return some
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

// execute executes statements together, each on its own, and repeats those that
// the table throttled or failed at. It returns an error for each, nil when it was
// executed.
func (t *Table) execute(ctx context.Context, tried string, tries int, statements []types.BatchStatementRequest) []error {
	errs, left := make([]error, len(statements)), make([]int, len(statements))
	for i := range left {
		left[i] = i
	}
	err := retry.Contended(ctx, tries, func() (done bool, err error) {
		some := picked(statements, left)
		out, err := t.client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: some})
		if err != nil {
			return false, wrap(tried, err)
		}
		if len(out.Responses) != len(some) {
			return false, fault.Busy(fmt.Errorf("%s: %d answers to %d statements", tried, len(out.Responses), len(some)))
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
	return errs
}
