package dynamo

import (
	"context"
	"errors"
	"fmt"
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

// insertion is an item to be created.
type insertion struct {
	key       key
	statement string
	values    []types.AttributeValue // as the statement asks for them, the key first
	size      int                    // bytes, about
}

func (t *db) insertion(it item) insertion {
	names := append(make([]string, 0, len(it)), attrPK, attrSK)
	for name := range it {
		if name != attrPK && name != attrSK {
			names = append(names, name)
		}
	}
	slices.Sort(names[2:])
	i := insertion{key: keyOf(it), values: make([]types.AttributeValue, len(names)), size: insertOverhead}
	for n, name := range names {
		i.values[n] = it[name]
		i.size += bodySize(it[name])
	}
	i.statement = `INSERT INTO "` + t.name + `" VALUE {'` + strings.Join(names, `': ?, '`) + `': ?}`
	return i
}

// Bytes of an item, about: of each site, and of all but its body and sites.
const (
	siteBytes      = 40
	insertOverhead = 256
)

// bodySize is the bytes of an attribute, if they can be many.
func bodySize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		return siteBytes * len(v.Value)
	}
	return 0
}

// insert creates the items whose keys are free, and reports by position those
// whose keys are taken: of two with the same key that is the second. An item
// whose creation was not answered may be reported as taken.
func (t *db) insert(ctx context.Context, items []insertion) (taken []bool, err error) {
	taken = make([]bool, len(items))
	distinct := make([]int, 0, len(items))
	seen := make(map[key]bool, len(items))
	for i := range items {
		if taken[i] = seen[items[i].key]; !taken[i] {
			seen[items[i].key] = true
			distinct = append(distinct, i)
		}
	}
	var batches [][]int
	for len(distinct) > 0 {
		n := batchLength(items, distinct)
		batches = append(batches, distinct[:n:n])
		distinct = distinct[n:]
	}
	return taken, parallel.UntilError(ctx, maxInsertParallel, slices.All(batches), func(ctx context.Context, _ int, batch []int) error {
		_, err := t.insertBatch(ctx, items, batch, taken)
		return err
	})
}

// batchLength is how many of the next items one batch takes.
func batchLength(items []insertion, next []int) int {
	size := 0
	for n, at := range next {
		if size += items[at].size; n == maxInsertItems || n > 0 && size > maxInsertBytes {
			return n
		}
	}
	return len(next)
}

// insertBatch creates some of the items, and repeats those that the table
// throttled or failed at. With an error it returns those that may not exist.
func (t *db) insertBatch(ctx context.Context, items []insertion, batch []int, taken []bool) (failed []int, err error) {
	for attempt := 1; ; attempt++ {
		again, err := t.tryInsert(ctx, items, batch, taken)
		switch {
		case err == nil:
			return nil, nil
		case len(again) == 0:
			return batch, err
		case attempt == maxInsertTries:
			return again, fault.Busy(err)
		}
		if waitErr := retry.Backoff(ctx, attempt); waitErr != nil {
			return again, fault.Busy(err)
		}
		batch = again
	}
}

// tryInsert tries once. With an error it returns the items to repeat; none
// when the error is final.
func (t *db) tryInsert(ctx context.Context, items []insertion, batch []int, taken []bool) (again []int, err error) {
	statements := make([]types.BatchStatementRequest, len(batch))
	for i, at := range batch {
		statements[i] = types.BatchStatementRequest{Statement: &items[at].statement, Parameters: items[at].values}
	}
	const tried = "create items"
	answers, err := t.execute(ctx, tried, statements)
	if err != nil {
		return nil, err
	}
	for i, at := range batch {
		refusal := answers[i].Error
		if refusal == nil {
			continue
		}
		switch {
		case refusal.Code == types.BatchStatementErrorCodeEnumDuplicateItem:
			taken[at] = true
		case passes(refusal.Code):
			again, err = append(again, at), statementError(tried, refusal)
		default:
			return nil, statementError(tried, refusal)
		}
	}
	return again, err
}

// execute executes statements together, each on its own, and returns an answer
// for each.
func (t *db) execute(ctx context.Context, tried string, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	out, err := t.client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: statements})
	if err != nil {
		return nil, wrap(tried, err)
	}
	if len(out.Responses) != len(statements) {
		return nil, fault.Busy(fmt.Errorf("%s: %d answers to %d statements", tried, len(out.Responses), len(statements)))
	}
	return out.Responses, nil
}

// passes reports whether a statement that failed so is worth another try.
func passes(code types.BatchStatementErrorCodeEnum) bool {
	switch code {
	case types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
		types.BatchStatementErrorCodeEnumThrottlingError,
		types.BatchStatementErrorCodeEnumRequestLimitExceeded,
		types.BatchStatementErrorCodeEnumInternalServerError,
		types.BatchStatementErrorCodeEnumTransactionConflict:
		return true
	default:
		return false
	}
}

func statementError(tried string, e *types.BatchStatementError) error {
	return errors.New(tried + ": " + string(e.Code) + ": " + aws.ToString(e.Message))
}
