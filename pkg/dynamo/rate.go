package dynamo

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
)

// Attributes of a rate window (head and total are reserved words). Each bucket
// is an attribute of its own, b0 to b60, so that instances add to it without
// knowing what others added.
const (
	attrHead       = "winHead"
	attrTotal      = "winTotal"
	attrRateBucket = "b"

	attrRequests     = "requests"
	attrClientErrors = "clientErrors"
	attrRateLimited  = "rateLimited"
)

// usageRetention is how long a day is kept that counted requests or events,
// and a window since its last use, because it counts the day of it.
const usageRetention = (account.MaxUsageDays + 1) * 24 * time.Hour

func rateBucket(bucket int64) string { return attrRateBucket + strconv.Itoa(window.Index(bucket)) }

// Window reads the window of a subject, strongly consistent.
func (t *Table) Window(ctx context.Context, subject string) (window.Window, error) {
	it, err := t.get(ctx, rateKey(subject))
	return decodeWindow(it), err
}

// ExtendWindow makes the extension if the window's head still is the
// extension's and the total keeps to the limit. It returns the window as it is
// then.
//
// A write that the SDK repeats after a broken connection may count twice;
// that only ever admits less.
func (t *Table) ExtendWindow(ctx context.Context, subject string, e window.Extension) (window.Window, bool, error) {
	update := "ADD winTotal :delta, itemVersion :one, " + rateBucket(e.Head) + " :lease"
	values := item{
		":delta": num(e.Lease - e.Unused), ":one": num(1), ":lease": num(e.Lease),
		":head": num(e.Head), ":max": num(e.Limit - e.Lease + e.Unused),
	}
	add := func(name string, n int64) {
		if n != 0 {
			update += ", " + name + " :" + name
			values[":"+name] = num(n)
		}
	}
	add(attrRequests, e.Usage.Requests)
	add(attrClientErrors, e.Usage.ClientErrors)
	add(attrRateLimited, e.Usage.RateLimited)
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
func (t *Table) ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (window.Window, bool, error) {
	values := item{
		":type": str(typeRate), ":head": num(next.Head), ":total": num(next.Total), ":next": num(next.Version),
		":expires":  num(t.now().Add(usageRetention).Unix()),
		":requests": num(next.Usage.Requests), ":errors": num(next.Usage.ClientErrors), ":limited": num(next.Usage.RateLimited),
	}
	set := "SET t = :type, winHead = :head, winTotal = :total, itemVersion = :next, expiresAtEpoch = :expires, " +
		"requests = :requests, clientErrors = :errors, rateLimited = :limited"
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

// FinishDay keeps the usage of the window's day, unless that of a later
// version is kept.
func (t *Table) FinishDay(ctx context.Context, subject string, w window.Window) error {
	day := time.Unix(window.Day(w.Head)*daySeconds, 0).UTC()
	_, _, err := t.updateItem(ctx, "finish a day of requests", t.update(requestDayKey(subject, day.Format(time.DateOnly)),
		"SET t = :type, itemVersion = :version, requests = :requests, clientErrors = :errors, rateLimited = :limited, expiresAtEpoch = :expires",
		ifAbsent+" OR itemVersion < :version", item{
			":type": str(typeRequestDay), ":version": num(w.Version), ":requests": num(w.Usage.Requests),
			":errors": num(w.Usage.ClientErrors), ":limited": num(w.Usage.RateLimited),
			":expires": num(day.Add(usageRetention).Unix()),
		}), types.ReturnValueNone)
	return err
}

func decodeWindow(it item) window.Window {
	w := window.Window{
		Version: getNumber(it, attrItemVersion), Head: getNumber(it, attrHead), Total: getNumber(it, attrTotal), Usage: decodeUsage(it),
	}
	for i := range w.Counts {
		w.Counts[i] = getNumber(it, attrRateBucket+strconv.Itoa(i))
	}
	return w
}

func decodeUsage(it item) window.Usage {
	return window.Usage{
		Requests: getNumber(it, attrRequests), ClientErrors: getNumber(it, attrClientErrors), RateLimited: getNumber(it, attrRateLimited),
	}
}

const daySeconds = 24 * 60 * 60
