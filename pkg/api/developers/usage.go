package developers

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	fromParam = "from"
	toParam   = "to"

	// daysShown are shown when from is not given.
	daysShown = 30

	oneDay = 24 * time.Hour
)

// UsageStore keeps what applications did.
type UsageStore interface {
	// Usage returns the days from the first to the last by their dates. Days on
	// which nothing was counted may be left out.
	Usage(ctx context.Context, organization, application value.ID, first, last value.Time) (map[string]account.Usage, error)
}

// ApplicationUsage is what an application did, day by day.
type ApplicationUsage struct {
	Data []account.UsageDay `json:"data" doc:"Every day of the span, the oldest first, also days without requests."`
}

func (a *area) usageOperation() api.Operation {
	return api.Operation{
		ID: "getApplicationUsage", Method: http.MethodGet, Path: applicationPath + "/usage", Tag: applicationsTag, Access: api.Developer,
		Summary: "Read an application's usage by day",
		Description: "Days of UTC, for 90 days. Requests are counted in batches: an instance of the service that ends may have " +
			"counted up to 1% of the limit too many, and may lack the 4xx and 429 of its last batch. " +
			"Events, delivered and failed are exact; the deletion of an endpoint removes those of its last day.",
		Scope: auth.DevelopersRead,
		Params: []api.Param{
			{
				Name: fromParam, In: fault.InQuery, Type: "string", Format: "date",
				Description: "The first day: not after to, and at most 89 days ago. Absent: 29 days before to, as far as days are kept.",
			},
			{Name: toParam, In: fault.InQuery, Type: "string", Format: "date", Description: "The last day, not after today. Absent: today."},
		},
		Result: ApplicationUsage{}, Handle: a.usage,
	}
}

func (a *area) usage(r *api.Request) (*api.Response, error) {
	first, last, err := usageDays(r.Query, a.clock())
	if err != nil {
		return nil, err
	}
	app, err := a.find(r)
	if err != nil {
		return nil, err
	}
	counted, err := a.store.Usage(r.Context(), r.Organization(), app.ID, first, last)
	if err != nil {
		return nil, err
	}
	return api.OK(ApplicationUsage{Data: account.UsageDays(first, last, counted)})
}

// usageDays reads the first and the last day. The fault names each parameter
// that is wrong.
func usageDays(query url.Values, now time.Time) (first, last value.Time, err error) {
	today := value.TimeOf(now.UTC().Truncate(oneDay))
	oldest := today.Add(-(account.MaxUsageDays - 1) * oneDay)
	var details fault.Details
	date := func(name string, absent value.Time) value.Time {
		text := query.Get(name)
		if text == "" {
			return absent
		}
		day, err := time.Parse(time.DateOnly, text)
		at := value.TimeOf(day)
		switch {
		case err != nil:
			details.Add(fault.InQuery, name, fault.DetailFormat, "must be a date (2026-11-21)")
		case at < oldest || at > today:
			details.Add(fault.InQuery, name, fault.DetailOutOfRange, "must be a day from %s to today, %s", dateText(oldest), dateText(today))
		}
		return at
	}
	last = date(toParam, today)
	first = date(fromParam, max(last.Add(-(daysShown-1)*oneDay), oldest))
	if len(details) == 0 && first > last {
		details.Add(fault.InQuery, fromParam, fault.DetailOutOfRange, "must not be after to, %s", dateText(last))
	}
	return first, last, details.Err()
}

func dateText(day value.Time) string { return day.Std().Format(time.DateOnly) }
