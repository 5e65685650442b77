package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
)

// usageRetention is how long a day is kept that counted requests or events,
// and a window since its last use, because it counts the day of it.
const usageRetention = (account.MaxUsageDays + 1) * 24 * time.Hour

// Window reads the window of a subject, strongly consistent.
func (t *Table) Window(ctx context.Context, subject string) (window.Window, error) {
	return read(ctx, t, rateKey(subject), decode[window.Window])
}

// ExtendWindow makes the extension if the window's head still is the
// extension's and the total keeps to the limit. It returns the window as it is
// then. A write that the SDK repeats after a broken connection may count twice;
// that only ever admits less.
func (t *Table) ExtendWindow(ctx context.Context, subject string, e window.Extension) (window.Window, bool, error) {
	var sums []string
	values := item{}
	add := func(path, name string, n int64) {
		if n != 0 {
			sums = append(sums, path+" = "+path+" + :"+name)
			values[":"+name] = num(n)
		}
	}
	add("#Version", "one", 1)
	add("#Total", "total", e.Lease-e.Unused)
	add(bucketPath(e.Head), "lease", e.Lease)
	add(bucketPath(e.From), "back", -e.Unused)
	add("#Usage.#Requests", "requests", e.Usage.Requests)
	add("#Usage.#ClientErrors", "errors", e.Usage.ClientErrors)
	add("#Usage.#RateLimited", "limited", e.Usage.RateLimited)
	fits := when("#Head = :head AND #Total <= :max", item{":head": num(e.Head), ":max": num(e.Limit - e.Lease + e.Unused)})
	return t.changeWindow(ctx, "extend a rate window", t.update(rateKey(subject), "SET "+strings.Join(sums, ", "), fits, values))
}

func bucketPath(bucket int64) string { return fmt.Sprintf("#Counts[%d]", window.Index(bucket)) }

// ReplaceWindow writes the window if the stored one has the version, 0 meaning
// that there is none. It is an update, like every write of the functions of
// the read API: they may not put items.
func (t *Table) ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (window.Window, bool, error) {
	it := encode(rateKey(subject), typeRate, next)
	it[attrExpires] = num(t.now().Add(usageRetention).Unix())
	return t.changeWindow(ctx, "replace a rate window", t.setItem(it, ifLast(attrItemVersion, version)))
}

func (t *Table) changeWindow(ctx context.Context, tried string, w write) (window.Window, bool, error) {
	current, done, err := t.updateItem(ctx, tried, w)
	if err != nil {
		return window.Window{}, false, err
	}
	stored, err := decode[window.Window](current)
	return stored, done && err == nil, err
}

// FinishDay keeps the usage of the window's day, unless that of a later
// version is kept.
func (t *Table) FinishDay(ctx context.Context, subject string, w window.Window) error {
	day := time.Unix(window.Day(w.Head)*daySeconds, 0).UTC()
	it := requestDayKey(subject, day.Format(time.DateOnly)).newItem(typeRequestDay)
	it[attrItemVersion], it["Usage"], it[attrExpires] = num(w.Version), attribute(w.Usage), num(day.Add(usageRetention).Unix())
	_, _, err := t.updateItem(ctx, "finish a day of requests", t.setItem(it, when("attribute_not_exists(PK) OR #Version < :Version", nil)))
	return err
}

const daySeconds = 24 * 60 * 60
