package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/fault"
)

// Items that must not replace others are created in batches by PartiQL's
// INSERT, the only write that is conditional, comes in batches and does not
// stand or fail with the others of its batch. It consumes what a put does:
// a unit for each KB.
const (
	insertMost     = 25      // the most statements of a batch
	insertBytes    = 1 << 20 // of a batch, as the items' size goes
	insertParallel = 4       // batches under way at a time
	insertAttempts = 10      // with the pauses up to two seconds
)

// insertion is an item to be created: its attributes, the key first, in the
// order in which the statement asks for them.
type insertion struct {
	key       key
	statement string
	values    []types.AttributeValue
	size      int // bytes, about
}

// insertStatement creates an item of the given attributes.
func (t *db) insertStatement(names ...string) string {
	return `INSERT INTO "` + t.name + `" VALUE {'` + strings.Join(names, `': ?, '`) + `': ?}`
}

// insert creates the items whose keys are free, and reports by position those
// whose keys are not: of two with the same key that is the second. An item
// whose creation was not answered may be reported as being there.
func (t *db) insert(ctx context.Context, items []insertion) (there []bool, err error) {
	there = make([]bool, len(items))
	distinct := make([]int, 0, len(items))
	seen := make(map[key]bool, len(items))
	for i := range items {
		if there[i] = seen[items[i].key]; !there[i] {
			seen[items[i].key] = true
			distinct = append(distinct, i)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(insertParallel)
	for len(distinct) > 0 {
		n := batchLength(items, distinct)
		batch := distinct[:n:n]
		distinct = distinct[n:]
		group.Go(func() error { return t.insertBatch(ctx, items, batch, there) })
	}
	return there, group.Wait()
}

// batchLength is how many of the next items one batch takes.
func batchLength(items []insertion, next []int) int {
	size := 0
	for n, at := range next {
		if size += items[at].size; n == insertMost || n > 0 && size > insertBytes {
			return n
		}
	}
	return len(next)
}

// insertBatch creates some of the items and tries those again that the table
// throttled or failed at.
func (t *db) insertBatch(ctx context.Context, items []insertion, batch []int, there []bool) error {
	for attempt := 1; ; attempt++ {
		again, err := t.tryInsert(ctx, items, batch, there)
		if len(again) == 0 {
			return err
		}
		if attempt == insertAttempts {
			return fault.Busy(err)
		}
		if err := backOff(ctx, attempt); err != nil {
			return wrap("create items", err)
		}
		batch = again
	}
}

// tryInsert tries once and returns what is to be tried again, with the reason
// of one of them; an error without any of them is final.
func (t *db) tryInsert(ctx context.Context, items []insertion, tried []int, there []bool) (again []int, reason error) {
	statements := make([]types.BatchStatementRequest, len(tried))
	for i, at := range tried {
		statements[i] = types.BatchStatementRequest{Statement: &items[at].statement, Parameters: items[at].values}
	}
	out, err := t.client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: statements})
	if err != nil {
		return nil, wrap("create items", err)
	}
	if len(out.Responses) != len(tried) {
		return nil, fault.Busy(fmt.Errorf("create items: %d answers to %d statements", len(out.Responses), len(tried)))
	}
	for i, at := range tried {
		refusal := out.Responses[i].Error
		switch {
		case refusal == nil:
		case refusal.Code == types.BatchStatementErrorCodeEnumDuplicateItem:
			there[at] = true
		case passing(refusal.Code):
			again, reason = append(again, at), statementError(refusal)
		default:
			return nil, statementError(refusal)
		}
	}
	return again, reason
}

// passing tells errors of a statement that may be gone a little later.
func passing(code types.BatchStatementErrorCodeEnum) bool {
	switch code {
	case types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
		types.BatchStatementErrorCodeEnumThrottlingError,
		types.BatchStatementErrorCodeEnumRequestLimitExceeded,
		types.BatchStatementErrorCodeEnumInternalServerError,
		types.BatchStatementErrorCodeEnumTransactionConflict:
		return true
	}
	return false
}

func statementError(e *types.BatchStatementError) error {
	return errors.New("create an item: " + string(e.Code) + ": " + aws.ToString(e.Message))
}
