package dynamo

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/ratelimit/window"
)

// Attributes of a rate window (head and total are reserved words). Each bucket
// is an attribute of its own, b0 to b60, so that instances add to it without
// knowing what others added.
const (
	attrHead       = "winHead"
	attrTotal      = "winTotal"
	attrRateBucket = "b"
)

// rateRetention is how long a window is kept after its last use: far longer
// than the window, so that none disappears while instances count in it.
const rateRetention = 10 * time.Minute

func rateBucket(bucket int64) string { return attrRateBucket + strconv.Itoa(window.Index(bucket)) }

// ExtendWindow makes the extension if the window's head still is the
// extension's and the total keeps to the limit. It returns the window as it is
// then.
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
	current, done, err := t.updateItem(ctx, "extend a rate window",
		t.update(rateKey(subject), update, "winHead = :head AND winTotal <= :max", values), types.ReturnValueAllNew)
	if err != nil {
		return window.Window{}, false, err
	}
	return decodeWindow(current), done, nil
}

// ReplaceWindow writes the window if the stored one has the version, 0 meaning
// that there is none. It is an update, like every write of the functions of
// the read API: they may not put items.
func (t *RateStore) ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (window.Window, bool, error) {
	values := item{
		":type": str(typeRate), ":head": num(next.Head), ":total": num(next.Total), ":next": num(next.Version),
		":expires": num(t.now().Add(rateRetention).Unix()),
	}
	set := "SET t = :type, winHead = :head, winTotal = :total, itemVersion = :next, expiresAtEpoch = :expires"
	remove := ""
	for i, count := range next.Counts {
		name := attrRateBucket + strconv.Itoa(i)
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
	condition := ifAbsent
	if version != 0 {
		condition, values[":read"] = "itemVersion = :read", num(version)
	}
	current, done, err := t.updateItem(ctx, "replace a rate window", t.update(rateKey(subject), set, condition, values), types.ReturnValueNone)
	switch {
	case err != nil:
		return window.Window{}, false, err
	case !done:
		return decodeWindow(current), false, nil
	}
	return next, true, nil
}

func decodeWindow(it item) window.Window {
	w := window.Window{Version: getNumber(it, attrItemVersion), Head: getNumber(it, attrHead), Total: getNumber(it, attrTotal)}
	for i := range w.Counts {
		w.Counts[i] = getNumber(it, attrRateBucket+strconv.Itoa(i))
	}
	return w
}
