package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/price"
)

// UsageStore keeps what applications did.
type UsageStore interface {
	Applications(ctx context.Context, org value.ID) ([]account.Application, error)
	Usage(ctx context.Context, org, application value.ID, first, last value.Time) (map[string]account.Usage, error)
}

// Costs is an estimate of what an organization's use of a month costs.
type Costs struct {
	OrganizationID value.ID      `json:"organizationId"`
	Month          string        `json:"month"`
	From           string        `json:"from"` // dates, both included
	To             string        `json:"to"`
	Applications   int           `json:"applications"`
	Usage          account.Usage `json:"usage"`
	Lines          []CostLine    `json:"lines"`
	Dollars        float64       `json:"dollars"`
	Prices         string        `json:"prices"` // the month whose prices they are, in us-east-1
}

// CostLine is what one service charges for one kind of use.
type CostLine struct {
	Service string  `json:"service"`
	For     string  `json:"for"` // "requests" or "events"
	Units   float64 `json:"units"`
	Unit    string  `json:"unit"`
	Dollars float64 `json:"dollars"`
}

// What one request and one event use. A request is a page of 20 records that
// no cache has, with an API key: between one that an instance has in memory (1.7
// read units and $0.72 a million of Lambda, as lab's bench measures) and one for
// which it reads the list's index (34 and $1.41). An event is one that comes
// alone, with a payload of 1 KB, delivered by its first attempt. The benchmarks
// of the table and of webhooks measure the units; times and log lines are
// assumed, generously.
const (
	requestReads       = 14.0 // read units: the records, the tail, the credential
	requestWrites      = 0.5  // write units: leases of the rate limit
	requestInvocations = 2.0  // authorizer and area
	requestGBSeconds   = 0.010*3.0 + 0.005*0.5
	requestLogKB       = 1.5

	eventReads         = 5.5
	eventWrites        = 4.0 // payload, delivery, its outcome, counters, the history's index
	eventMessages      = 3.0 // sent, received, deleted
	eventInvocations   = 3.0 // dispatcher, worker, indexer
	eventGBSeconds     = 0.100*0.5 + 0.020*0.5 + 0.020*1.0
	eventLogKB         = 1.5
	kilobytesPerGB     = 1e6
	attemptsOfAFailure = 11.0 // the first and ten retries, the most that an endpoint may have
)

// EstimateCosts sums the usage of the organization's applications over the
// month, such as 2026-10, and estimates what it costs. The present month counts
// up to today. A month that began before the counters' oldest day, or that has
// not begun, is an error.
func EstimateCosts(ctx context.Context, store UsageStore, org value.ID, month string, now time.Time) (*Costs, error) {
	begin, err := time.Parse("2006-01", month)
	if err != nil {
		return nil, fmt.Errorf("the month %q is none: give a year and a month, such as %s", month, now.UTC().Format("2006-01"))
	}
	today := now.UTC().Truncate(24 * time.Hour)
	oldest := today.AddDate(0, 0, 1-account.MaxUsageDays)
	end := begin.AddDate(0, 1, -1)
	switch {
	case begin.After(today):
		return nil, fmt.Errorf("the month %s has not begun", month)
	case begin.Before(oldest):
		return nil, fmt.Errorf("usage is kept for %d days, since %s: the month %s began before", account.MaxUsageDays, oldest.Format(time.DateOnly), month)
	case end.After(today):
		end = today
	}
	applications, err := store.Applications(ctx, org)
	if err != nil {
		return nil, err
	}
	c := &Costs{
		OrganizationID: org, Month: month, From: begin.Format(time.DateOnly), To: end.Format(time.DateOnly),
		Applications: len(applications), Prices: price.AsOf,
	}
	for i := range applications {
		days, err := store.Usage(ctx, org, applications[i].ID, value.TimeOf(begin), value.TimeOf(end))
		if err != nil {
			return nil, err
		}
		for _, day := range account.UsageDays(value.TimeOf(begin), value.TimeOf(end), days) {
			c.Usage.Add(day.Usage)
		}
	}
	c.estimate()
	return c, nil
}

// estimate prices the usage.
func (c *Costs) estimate() {
	requests, events := float64(c.Usage.Requests), float64(c.Usage.Events)
	attempts := events + float64(c.Usage.Failed)*(attemptsOfAFailure-1)
	c.add("API Gateway", "requests", requests, "requests", price.GatewayRequests/price.Million)
	c.add("Lambda", "requests", requests*requestInvocations, "invocations", price.Invocations/price.Million)
	c.add("Lambda", "requests", requests*requestGBSeconds, "GB-seconds", price.GigabyteSecondsArm64)
	c.add("DynamoDB", "requests", requests*requestReads, "read units", price.ReadUnits/price.Million)
	c.add("DynamoDB", "requests", requests*requestWrites, "write units", price.WriteUnits/price.Million)
	c.add("CloudWatch Logs", "requests", requests*requestLogKB/kilobytesPerGB, "GB", price.LogIngestion)
	c.add("SQS", "events", attempts*eventMessages, "requests", (price.QueueRequests+price.FairRequests)/price.Million)
	c.add("Lambda", "events", attempts*eventInvocations, "invocations", price.Invocations/price.Million)
	c.add("Lambda", "events", attempts*eventGBSeconds, "GB-seconds", price.GigabyteSecondsArm64)
	c.add("DynamoDB", "events", attempts*eventReads, "read units", price.ReadUnits/price.Million)
	c.add("DynamoDB", "events", attempts*eventWrites, "write units", price.WriteUnits/price.Million)
	c.add("CloudWatch Logs", "events", attempts*eventLogKB/kilobytesPerGB, "GB", price.LogIngestion)
}

func (c *Costs) add(service, use string, units float64, unit string, each float64) {
	c.Lines = append(c.Lines, CostLine{Service: service, For: use, Units: units, Unit: unit, Dollars: units * each})
	c.Dollars += units * each
}
