package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
)

// write changes one item, under a condition: alone by [Table.putItem],
// [Table.updateItem] or [Table.removeItem], or together with others by
// [Table.transact].
type write = types.TransactWriteItem

// condition is what must hold of an item for a write to be made; the zero one
// always holds.
type condition struct {
	expression string
	values     item
}

func when(expression string, values item) condition { return condition{expression, values} }

// Conditions of many writes.
var (
	always   = condition{}
	ifAbsent = when("attribute_not_exists(PK)", nil)
	ifExists = when("attribute_exists(PK)", nil)
)

// ifEqual is the condition that an attribute is the number.
func ifEqual[N number](attribute string, n N) condition {
	return when(attribute+" = :"+attribute+"Before", item{":" + attribute + "Before": num(n)})
}

// ifLast is ifEqual for an attribute that every write changes; 0 means that the
// item does not exist.
func ifLast[N number](attribute string, n N) condition {
	if n == 0 {
		return ifAbsent
	}
	return ifEqual(attribute, n)
}

// ifAbsentOrExpired is ifAbsent where an item can expire: the table removes it up
// to 48 hours late.
func (t *Table) ifAbsentOrExpired() condition {
	return when("attribute_not_exists(PK) OR expiresAtEpoch <= :now", item{":now": num(t.now().Unix())})
}

// ifLive is the condition that the last write of an item that can expire had the
// token; 0 means that there is none.
func (t *Table) ifLive(token uint64) condition {
	if token == 0 {
		return t.ifAbsentOrExpired()
	}
	return ifEqual(attrToken, token)
}

func ifRevision(revision value.Time) condition { return ifEqual(attrRevision, revision) }

// and holds where both conditions hold.
func (c condition) and(other condition) condition {
	both := when(c.expression+" AND "+other.expression, item{})
	maps.Copy(both.values, c.values)
	maps.Copy(both.values, other.values)
	return both
}

func (c condition) text() *string {
	if c.expression == "" {
		return nil
	}
	return &c.expression
}

// put is the write of a whole item.
func (t *Table) put(it item, c condition) write {
	return write{Put: &types.Put{
		TableName: &t.name, Item: it, ConditionExpression: c.text(), ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// set is the change of some attributes of an item; one that is nil is removed. The
// condition can name the new value of an attribute by a colon and its name.
func (t *Table) set(k key, attributes item, c condition) write {
	var sets, removes []string
	values := item{}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if attributes[name] == nil {
			removes = append(removes, "#"+name)
			continue
		}
		sets = append(sets, "#"+name+" = :"+name)
		values[":"+name] = attributes[name]
	}
	var expression string
	if len(sets) > 0 {
		expression = " SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	return t.update(k, expression[1:], c, values)
}

// setItem is [Table.set] of all attributes of an item.
func (t *Table) setItem(it item, c condition) write {
	k := keyOf(it)
	delete(it, attrPK)
	delete(it, attrSK)
	return t.set(k, it, c)
}

// update is the change of an item by an expression with values. #status in an
// expression is the attribute status, whose name alone is a reserved word.
func (t *Table) update(k key, expression string, c condition, values item) write {
	maps.Copy(values, c.values)
	return write{Update: &types.Update{
		TableName: &t.name, Key: k.item(), UpdateExpression: &expression,
		ConditionExpression: c.text(), ExpressionAttributeValues: values,
		ExpressionAttributeNames:            namesIn(expression, c.expression),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

var placeholder = regexp.MustCompile(`#(\w+)`)

// namesIn maps each #name in the expressions to the name.
func namesIn(expressions ...string) (names map[string]string) {
	for _, m := range placeholder.FindAllStringSubmatch(strings.Join(expressions, " "), -1) {
		if names == nil {
			names = map[string]string{}
		}
		names[m[0]] = m[1]
	}
	return names
}

// remove is the removal of an item.
func (t *Table) remove(k key, c condition) write {
	return write{Delete: &types.Delete{
		TableName: &t.name, Key: k.item(), ConditionExpression: c.text(), ExpressionAttributeValues: c.values,
	}}
}

// check is a condition of a transaction on an item that it does not write.
func (t *Table) check(k key, c condition) write {
	return write{ConditionCheck: &types.ConditionCheck{
		TableName: &t.name, Key: k.item(), ConditionExpression: c.text(), ExpressionAttributeValues: c.values,
	}}
}

// putItem makes one put. When its condition does not hold, nothing is written:
// done is false, and current is the item as it is, nil if there is none. Each
// kind of write has a method of its own, so that the linker leaves out of a
// function the requests that it never makes and may not make.
func (t *Table) putItem(ctx context.Context, tried string, w write) (current item, done bool, err error) {
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: w.Put.TableName, Item: w.Put.Item,
		ConditionExpression: w.Put.ConditionExpression, ExpressionAttributeValues: w.Put.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: w.Put.ReturnValuesOnConditionCheckFailure,
	})
	return result(tried, err)
}

// removeItem makes one removal, as [Table.putItem] does of a put.
func (t *Table) removeItem(ctx context.Context, tried string, w write) (current item, done bool, err error) {
	_, err = t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: w.Delete.TableName, Key: w.Delete.Key,
		ConditionExpression: w.Delete.ConditionExpression, ExpressionAttributeValues: w.Delete.ExpressionAttributeValues,
	})
	return result(tried, err)
}

const (
	maxParallelRemovals = 8
	maxRemovalTries     = 12 // with the pauses up to two seconds
)

// ItemRef names an item that was read.
type ItemRef struct{ key key }

// RemoveItems deletes items, and tries again what the table throttles; absent ones
// are ignored.
func (t *Table) RemoveItems(ctx context.Context, refs []ItemRef) error {
	return parallel.UntilError(ctx, maxParallelRemovals, slices.All(refs), func(ctx context.Context, _ int, r ItemRef) error {
		for attempt := 1; ; attempt++ {
			_, _, err := t.removeItem(ctx, "remove items", t.remove(r.key, always))
			if !fault.Is(err, fault.Unavailable) || attempt == maxRemovalTries || retry.Backoff(ctx, attempt) != nil {
				return err
			}
		}
	})
}

// putOnce puts an item under a token, which it sets. A put that meets its own
// earlier try, whose answer was lost, knows it by the token and is done.
func (t *Table) putOnce(ctx context.Context, tried string, it item, token uint64, c condition) (current item, done bool, err error) {
	it[attrToken] = num(token)
	current, done, err = t.putItem(ctx, tried, t.put(it, c))
	return current, done || err == nil && getUnsigned(current, attrToken) == token, err
}

// updateItem makes one update, as [Table.putItem] does of a put; once done, current
// is the item as it is then.
func (t *Table) updateItem(ctx context.Context, tried string, w write) (current item, done bool, err error) {
	out, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: w.Update.TableName, Key: w.Update.Key, UpdateExpression: w.Update.UpdateExpression,
		ConditionExpression: w.Update.ConditionExpression, ExpressionAttributeValues: w.Update.ExpressionAttributeValues,
		ExpressionAttributeNames:            w.Update.ExpressionAttributeNames,
		ReturnValuesOnConditionCheckFailure: w.Update.ReturnValuesOnConditionCheckFailure, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return result(tried, err)
	}
	return out.Attributes, true, nil
}

// result reads the answer to a conditional write.
func result(tried string, err error) (current item, done bool, _ error) {
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil, true, nil
	case errors.As(err, &failed):
		return failed.Item, false, nil
	}
	return nil, false, wrap(tried, err)
}

// refusals are, by position, the writes of a transaction whose condition did
// not hold, with the item as it is, nil when there is none. When there are any,
// nothing was written.
type refusals map[int]item

func (r refusals) has(position int) bool {
	_, has := r[position]
	return has
}

// orTaken is the error of a transaction that creates items whose keys, which
// are random, cannot be taken.
func orTaken(refused refusals, err error) error {
	if err == nil && len(refused) > 0 {
		return errors.New("create items: a new key is taken")
	}
	return err
}

// maxCollisions bounds the tries of a transaction that collides with others on
// the same items; with the pauses between them they take up to two seconds.
const maxCollisions = 12

// transact makes all of the writes or none.
func (t *Table) transact(ctx context.Context, tried string, writes ...write) (refusals, error) {
	return t.transactTries(ctx, tried, 1, writes)
}

// transactTries makes all of the writes or none. A transaction that collides
// with another one is tried again, since a collision says nothing about the
// conditions. One that the table throttles, fails at or does not answer is
// tried so many times in all, under the same token: by the token the table
// knows a transaction that it has already made, so that its repetition
// succeeds and does not fail on its conditions.
func (t *Table) transactTries(ctx context.Context, tried string, tries int, writes []write) (refusals, error) {
	token := value.NewRandomID().String()
	for attempt := 1; ; attempt++ {
		_, err := t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: writes, ClientRequestToken: &token,
		})
		if err == nil {
			return nil, nil
		}
		refused, collided := cancellation(err)
		if len(refused) > 0 {
			return refused, nil
		}
		err = wrap(tried, err)
		switch {
		case collided && attempt < maxCollisions:
			token = value.NewRandomID().String()
		case collided:
			return nil, fault.Busy(err)
		case tries <= 1 || !fault.Is(err, fault.Unavailable):
			return nil, err
		default:
			tries--
		}
		if waitErr := retry.Backoff(ctx, attempt); waitErr != nil {
			return nil, err
		}
	}
}

// cancellation reads why a transaction was cancelled: the writes whose
// condition failed, and whether it met another request or too little
// throughput.
func cancellation(err error) (refused refusals, collided bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		var conflict *types.TransactionConflictException
		return nil, errors.As(err, &conflict)
	}
	refused = refusals{}
	for i, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "ConditionalCheckFailed":
			refused[i] = reason.Item
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			collided = true
		}
	}
	return refused, collided
}

// maxChangeTries bounds how often a change is computed anew because another
// writer changed the item meanwhile.
const maxChangeTries = 8

// changing makes tries at a change that an owner asked for. When others were
// always faster, the owner is told to repeat the request.
func changing(ctx context.Context, noun string, try func() (done bool, err error)) error {
	err := retry.Contended(ctx, maxChangeTries, try)
	if errors.Is(err, retry.ErrContended) {
		return fault.New(fault.Conflict, fault.CodeConflict,
			"others are changing the %s at the same time: read it again and repeat the request", noun)
	}
	return err
}

// changeItem reads an item and makes the writes that plan makes of it, all or
// none; no writes mean that it stays. They depend on the item as read: when one is
// refused, the item is read anew. found is false, without an error, when it
// does not exist; an error of plan ends the change.
func changeItem[T any](ctx context.Context, t *Table, noun string, k key, decode func(item) (*T, error), plan func(*T, item) ([]write, error)) (found bool, err error) {
	err = changing(ctx, noun, func() (done bool, err error) {
		it, err := t.get(ctx, k)
		if err != nil {
			return false, err
		}
		v, err := decode(it)
		if found = v != nil; err != nil || !found {
			return true, err
		}
		writes, err := plan(v, it)
		if err != nil || len(writes) == 0 {
			return true, err
		}
		refused, err := t.transact(ctx, "change the "+noun, writes...)
		return len(refused) == 0, err
	})
	return found && err == nil, err
}

// modify reads an item whose every write sets attrToken, nil where there is none, and
// has write store what change makes of it if its last write still has the token, unless
// change reports that it stays. Both are called again when another writer was faster.
func modify[T any](
	ctx context.Context, t *Table, k key, decode func(item) (T, error), change func(*T) (changed bool),
	write func(next *T, token uint64) (done bool, err error),
) error {
	err := retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		it, err := t.get(ctx, k)
		if err != nil {
			return false, err
		}
		v, err := decode(it)
		if err != nil || !change(&v) {
			return true, err
		}
		return write(&v, getUnsigned(it, attrToken))
	})
	if err != nil {
		err = fmt.Errorf("change %s %s: %w", k.pk, k.sk, err)
	}
	return err
}
