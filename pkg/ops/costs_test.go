package ops_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
)

// used is a store of two applications of one organization, with the same usage
// on each day that is asked for.
type used struct {
	org   value.ID
	apps  []account.Application
	day   account.Usage
	asked [2]value.Time
}

func (u *used) Applications(_ context.Context, org value.ID) ([]account.Application, error) {
	if org != u.org {
		return nil, nil
	}
	return u.apps, nil
}

func (u *used) Usage(_ context.Context, _, _ value.ID, first, last value.Time) (map[string]account.Usage, error) {
	u.asked = [2]value.Time{first, last}
	days := map[string]account.Usage{}
	for day := first; day <= last; day = day.Add(24 * time.Hour) {
		days[day.Std().Format(time.DateOnly)] = u.day
	}
	return days, nil
}

func TestCostsAreOfAMonth(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		month    string
		from, to string // or
		refused  string
	}{
		{month: "2026-10", from: "2026-10-01", to: "2026-10-31"},
		{month: "2026-09", from: "2026-09-01", to: "2026-09-30"},
		{month: "2026-11", from: "2026-11-01", to: "2026-11-22"},
		{month: "2026-08", refused: "since 2026-08-25"},
		{month: "2026-12", refused: "has not begun"},
		{month: "2026-13", refused: "such as 2026-11"},
		{month: "October", refused: "such as 2026-11"},
		{month: "", refused: "such as 2026-11"},
	} {
		t.Run(row.month, func(t *testing.T) {
			store := &used{org: value.NewID(), apps: make([]account.Application, 2), day: account.Usage{Requests: 1}}
			c, err := ops.EstimateCosts(t.Context(), store, store.org, row.month, now)
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("got %+v, %v; want an error with %q", c, err, row.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			days := store.asked[1].Std().Sub(store.asked[0].Std())/(24*time.Hour) + 1
			if c.From != row.from || c.To != row.to || c.Usage.Requests != 2*int64(days) || c.Applications != 2 {
				t.Errorf("got %+v, want from %s to %s", c, row.from, row.to)
			}
		})
	}
}

func TestCostsAreTheSumOfTheirLines(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	store := &used{org: value.NewID(), apps: make([]account.Application, 1), day: account.Usage{Requests: 1_000_000, Events: 1_000_000, Failed: 1}}
	c, err := ops.EstimateCosts(t.Context(), store, store.org, "2026-11", now)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, line := range c.Lines {
		sum += line.Dollars
		if line.Service == "API Gateway" && math.Abs(line.Dollars-3.5) > 1e-9 {
			t.Errorf("a million requests: %+v", line)
		}
	}
	if math.Abs(sum-c.Dollars) > 1e-9 || c.Dollars < 10 || c.Dollars > 30 {
		t.Errorf("$%v, of lines $%v", c.Dollars, sum)
	}
	other, err := ops.EstimateCosts(t.Context(), store, value.NewID(), "2026-11", now)
	if err != nil || other.Applications != 0 || other.Dollars != 0 {
		t.Errorf("an organization without applications costs %+v, %v", other, err)
	}
}
