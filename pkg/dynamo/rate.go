package dynamo

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/ratelimit/window"
)

// Attributes of a rate window (head and total are reserved words). Each bucket is an attribute of its own, b0 to
// b60, so that instances add to it without knowing what others added.
const (
	attrHead       = "winHead"
	attrTotal      = "winTotal"
	attrRateBucket = "b"
)

// rateIdle is how long a window stays after its last use. It is far longer
// than the window, so that none disappears under those who count in it.
const rateIdle = 10 * time.Minute

func rateBucket(bucket int64) string { return attrRateBucket + strconv.Itoa(window.Index(bucket)) }

// ExtendWindow implements the store of rate limits: it adds to the head
// bucket if that still is the head and the total keeps to the limit.
//
// A write that the SDK repeats after a broken connection may count twice;
// that only ever admits less.
func (t *RateStore) ExtendWindow(ctx context.Context, subject string, e window.Extension) (window.Window, bool, error) {
	update := "ADD winTotal :delta, itemVersion :one, " + rateBucket(e.Head) + " :lease"
	values := item{
		":delta": num(e.Lease - e.Unused), ":one": num(1), ":lease": num(e.Lease),
		":head": num(e.Head), ":max": num(e.Limit - e.Lease + e.Unused),
	}
	if e.Unused > 0 {
		update += ", " + rateBucket(e.From) + " :back"
		values[":back"] = num(-e.Unused)
	}
	out, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: rateKey(subject).item(),
		UpdateExpression: &update, ExpressionAttributeValues: values,
		ConditionExpression:                 aws.String("winHead = :head AND winTotal <= :max"),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if current, failed := conditionFailed(err); failed {
		return decodeWindow(current), false, nil
	}
	if err != nil {
		return window.Window{}, false, wrap("extend a rate window", err)
	}
	return decodeWindow(out.Attributes), true, nil
}

// ReplaceWindow implements the store of rate limits: it writes the window if
// the version is the one in the table, 0 meaning that there is none. It is an
// update, like everything that the functions of the read API write: they may
// not put items.
func (t *RateStore) ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (window.Window, bool, error) {
	values := item{
		":type": str(typeRate), ":head": num(next.Head), ":total": num(next.Total), ":next": num(next.Version),
		":expires": num(t.now().Add(rateIdle).Unix()),
	}
	set := "SET t = :type, winHead = :head, winTotal = :total, itemVersion = :next, expiresAtEpoch = :expires"
	remove := ""
	for slot, count := range next.Counts {
		name := attrRateBucket + strconv.Itoa(slot)
		if count == 0 {
			remove += ", " + name
			continue
		}
		set += ", " + name + " = :" + name
		values[":"+name] = num(count)
	}
	if remove != "" {
		set += " REMOVE " + remove[2:]
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: rateKey(subject).item(), UpdateExpression: &set, ExpressionAttributeValues: values,
		ConditionExpression:                 aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if version != 0 {
		in.ConditionExpression = aws.String("itemVersion = :read")
		values[":read"] = num(version)
	}
	_, err := t.client.UpdateItem(ctx, in)
	if current, failed := conditionFailed(err); failed {
		return decodeWindow(current), false, nil
	}
	if err != nil {
		return window.Window{}, false, wrap("replace a rate window", err)
	}
	return next, true, nil
}

func decodeWindow(it item) window.Window {
	w := window.Window{Version: getNumber(it, attrItemVersion), Head: getNumber(it, attrHead), Total: getNumber(it, attrTotal)}
	for slot := range w.Counts {
		w.Counts[slot] = getNumber(it, attrRateBucket+strconv.Itoa(slot))
	}
	return w
}
