package account

import (
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// MaxUsageDays is of how many days, today included, the usage of an application
// is shown.
const MaxUsageDays = 90

// Usage is what an application did on one day of UTC, as the API shows it.
type Usage struct {
	Requests     int64 `json:"requests" doc:"Requests with an accepted credential of the application, refused ones included, as often as they count against the rate limit."`
	ClientErrors int64 `json:"clientErrors" doc:"Requests answered 4xx, without 429."`
	RateLimited  int64 `json:"rateLimited" doc:"Requests answered 429."`
	Events       int64 `json:"events" doc:"Events first attempted on the day, over all endpoints of the application. An event for several endpoints counts for each."`
	Delivered    int64 `json:"delivered" doc:"Events that became DELIVERED on the day, also by redelivery."`
	Failed       int64 `json:"failed" doc:"Events that became FAILED on the day."`
}

// Add counts what another one counted.
func (u *Usage) Add(o Usage) {
	u.Requests += o.Requests
	u.ClientErrors += o.ClientErrors
	u.RateLimited += o.RateLimited
	u.Events += o.Events
	u.Delivered += o.Delivered
	u.Failed += o.Failed
}

// UsageDay is one day of an application's usage.
type UsageDay struct {
	Date string `json:"date" format:"date" doc:"The day, in UTC."`
	Usage
}

// UsageDays lists every day from the first to the last, which are dates, with
// the day's counts.
func UsageDays(first, last value.Time, counted map[string]Usage) []UsageDay {
	days := []UsageDay{}
	for day := first; day <= last; day = day.Add(24 * time.Hour) {
		date := day.Std().Format(time.DateOnly)
		days = append(days, UsageDay{Date: date, Usage: counted[date]})
	}
	return days
}
