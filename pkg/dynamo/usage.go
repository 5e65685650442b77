package dynamo

import (
	"context"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Usage reads what an application of the organization counted on each day, by
// its date, from the first to the last. Days on which it counted nothing may be
// left out.
func (t *Table) Usage(ctx context.Context, org, application value.ID, first, last value.Time) (map[string]account.Usage, error) {
	requests, err := t.requestDays(ctx, application.String(), last)
	if err != nil {
		return nil, err
	}
	events, err := t.eventDays(ctx, org, application, first, last)
	if err != nil {
		return nil, err
	}
	for date, u := range requests {
		u.Add(events[date])
		events[date] = u
	}
	return events, nil
}

// requestDays reads the days of requests up to the last, of which the present
// one, or the last with a request, is in the rate window. The window comes
// first: a day that is finished meanwhile is then found twice, and not missed.
func (t *Table) requestDays(ctx context.Context, subject string, last value.Time) (map[string]account.Usage, error) {
	found, version := map[string]account.Usage{}, map[string]int64{}
	in := between(ratePartition(subject), rateKey(subject).sk, requestDayKey(subject, dateOf(last)).sk)
	err := t.query(ctx, in, func(it item) (bool, error) {
		w, err := decode[window.Window](it) // a day has its version and usage
		date, finished := strings.CutPrefix(getString(it, attrSK), requestDayPrefix)
		if !finished {
			date = dateOf(value.Time(window.Day(w.Head) * daySeconds * 1000))
		}
		if u := w.Usage; w.Version >= version[date] {
			version[date] = w.Version
			found[date] = account.Usage{Requests: u.Requests + u.RateLimited, ClientErrors: u.ClientErrors, RateLimited: u.RateLimited}
		}
		return true, err
	})
	return found, err
}

// eventDays reads the days of events from the first to the last, of which each
// tally holds its present one. The tallies come first, as in [Table.Stats].
func (t *Table) eventDays(ctx context.Context, org, application value.ID, first, last value.Time) (map[string]account.Usage, error) {
	byKey := map[string]webhook.EventDay{} // date and endpoint
	ids, err := t.endpointsOf(ctx, org, application)
	if err != nil {
		return nil, err
	}
	stored, err := t.tallies(ctx, org, ids...)
	if err != nil {
		return nil, err
	}
	for endpoint, tally := range stored {
		if day := tally.Day(); day.Start >= first && day.Start <= last {
			byKey[eventDayKey(org, application, endpoint, day.Start).sk] = day
		}
	}
	in := between(eventDaysPartition(org, application), dateOf(first), dateOf(last)+"$") // "$" is behind every "#"
	err = t.query(ctx, in, func(it item) (more bool, err error) {
		byKey[getString(it, attrSK)], err = decode[webhook.EventDay](it)
		return true, err
	})
	found := map[string]account.Usage{}
	for k, d := range byKey {
		date, _, _ := strings.Cut(k, "#")
		u := found[date]
		u.Add(account.Usage{Events: d.Events, Delivered: d.Delivered, Failed: d.Failed})
		found[date] = u
	}
	return found, err
}
