package webhook_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const days = 24 * time.Hour

// inRow is the health of an endpoint whose last attempts failed, after a success.
func inRow(count int, span time.Duration) webhook.Health {
	reason, success := "connection refused", now.Add(-90*days)
	return webhook.Health{
		Run:      webhook.FailureRun{Count: count, Start: now.Add(-span), Last: now},
		Counters: webhook.Counters{LastSuccessAt: &success, FailureCount: int64(count), LastFailureReason: &reason},
	}
}

func recent(attempts, failed, slow int) webhook.Health {
	success := now.Add(-90 * days)
	return webhook.Health{Counters: webhook.Counters{LastSuccessAt: &success}, Recent: webhook.Recent{Attempts: attempts, Failed: failed, Slow: slow}}
}

// unproven is the health of an endpoint that has never answered 2xx.
func unproven(h webhook.Health) webhook.Health {
	h.Counters.LastSuccessAt = nil
	return h
}

func openSince(span, interval time.Duration) *webhook.Circuit {
	return &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: now.Add(-span), ProbeAt: now, IntervalMs: interval.Milliseconds()}
}

func draining() *webhook.Circuit { return openSince(time.Hour, time.Minute).Drain(now - 1000) }

// seen are outcomes of attempts that ended just after the time: a success, and a
// failure of a probe.
func seen(succeeded, probeFailed bool, at value.Time) (outcomes []webhook.StreamOutcome) {
	if succeeded {
		outcomes = append(outcomes, outcomeOf(&webhook.Delivery{ID: value.ID{1}}, attempt(at+1, 0, ""), at, 1, 1))
	}
	if probeFailed {
		outcomes = append(outcomes, outcomeOf(&webhook.Delivery{ID: value.ID{1}, Probe: true}, attempt(at+1, 0, "no"), at, 1, 2))
	}
	return outcomes
}

func TestCircuitIsJudgedByItsRules(t *testing.T) {
	opened := &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: now, ProbeAt: now.Add(time.Minute), IntervalMs: time.Minute.Milliseconds()}
	probed := func(span, interval time.Duration) *webhook.Circuit {
		c := *openSince(span, interval)
		c.ProbeAt = now.Add(interval)
		return &c
	}
	held := openSince(time.Hour, time.Minute)
	for name, tt := range map[string]struct {
		circuit                *webhook.Circuit
		status                 webhook.Status
		health                 webhook.Health
		succeeded, probeFailed bool
		want                   *webhook.Circuit
	}{
		"ten in a row over a minute":            {health: inRow(10, time.Minute), want: opened},
		"ten in a row over less":                {health: inRow(10, time.Minute-time.Millisecond)},
		"ten in a row over 59 seconds":          {health: inRow(10, 59*time.Second)},
		"nine in a row":                         {health: inRow(9, time.Hour)},
		"ten in a row while paused":             {health: inRow(10, time.Minute), status: webhook.Paused},
		"80% of 50":                             {health: recent(50, 40, 0), want: opened},
		"80% of 50, the last well":              {health: recent(50, 40, 0), succeeded: true, want: opened},
		"79% of 100":                            {health: recent(100, 79, 0)},
		"less than 80% of 51":                   {health: recent(51, 40, 0)},
		"all of 49":                             {health: recent(49, 49, 0)},
		"all of 50":                             {health: recent(50, 50, 0), want: opened},
		"draining, and fails again":             {circuit: draining(), health: inRow(10, time.Minute), want: opened},
		"draining, and 80% fail again":          {circuit: draining(), health: recent(50, 40, 0), want: opened},
		"draining, and some fail":               {circuit: draining(), health: recent(49, 40, 0), want: draining()},
		"draining, and well":                    {circuit: draining(), health: recent(60, 0, 0), succeeded: true, want: draining()},
		"open, and a straggler fails":           {circuit: held, health: inRow(30, time.Hour), want: held},
		"open, and a straggler succeeds":        {circuit: held, health: recent(60, 60, 0), succeeded: true, want: held.Drain(now)},
		"the first probe fails":                 {circuit: held, health: inRow(11, time.Hour), probeFailed: true, want: probed(time.Hour, 2*time.Minute)},
		"the sixth probe fails":                 {circuit: openSince(time.Hour, 32*time.Minute), health: inRow(16, time.Hour), probeFailed: true, want: probed(time.Hour, time.Hour)},
		"a later probe fails":                   {circuit: openSince(days, time.Hour), health: inRow(40, days), probeFailed: true, want: probed(days, time.Hour)},
		"one probe fails and another succeeds":  {circuit: held, health: inRow(1, 0), succeeded: true, probeFailed: true, want: held.Drain(now)},
		"a probe fails after the circuit ended": {health: inRow(2, 0), probeFailed: true},
		"a redelivery fails":                    {circuit: held.Redeliver(value.ID{1}, now), health: inRow(11, time.Hour), probeFailed: true, want: probed(time.Hour, 2*time.Minute)},
		"a probe succeeds":                      {circuit: held, succeeded: true, want: held.Drain(now)},
	} {
		t.Run(name, func(t *testing.T) {
			e := &webhook.Endpoint{Status: webhook.Active, Circuit: tt.circuit, CreatedAt: now.Add(-90 * days)}
			if tt.status != "" {
				e.Status = tt.status
			}
			got, disable := e.NextRouting(tt.health, seen(tt.succeeded, tt.probeFailed, now), now)
			if diff := cmp.Diff(tt.want, got.Circuit); diff != "" || disable != "" {
				t.Errorf("disable %q, circuit (-want +got):\n%s", disable, diff)
			}
		})
	}
}

// TestProbesComeLessAndLessOften begins anew once the owner has changed the url,
// where the probe that comes at once fails, too.
func TestProbesComeLessAndLessOften(t *testing.T) {
	for name, tt := range map[string]struct {
		health func(webhook.Health) webhook.Health
		waits  []int // in seconds
	}{
		"after a success":     {func(h webhook.Health) webhook.Health { return h }, []int{60, 120, 240, 480, 960, 1920, 3600, 3600, 3600}},
		"never answered well": {unproven, []int{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600}},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := &webhook.Endpoint{Status: webhook.Active}, now
			for begun := range 2 {
				for i, seconds := range tt.waits {
					want := time.Duration(seconds) * time.Second
					next, _ := e.NextRouting(tt.health(inRow(10+i, time.Hour)), seen(false, begun+i > 0, at), at)
					if wait := next.Circuit.ProbeAt.Std().Sub(at.Std()); wait != want || next.Circuit.Interval() != want {
						t.Fatalf("probe %d comes after %s of %s, want %s", i+1, wait, next.Circuit.Interval(), want)
					}
					if soon := next.Circuit.Soon(); soon != (want < time.Minute) {
						t.Errorf("probe %d, after %s, comes soon: %t", i+1, want, soon)
					}
					e.Circuit, at = next.Circuit, next.Circuit.ProbeAt
				}
				e.Circuit = e.Circuit.OwnerReset(at)
				if e.Circuit.ProbeAt != at || e.Circuit.Soon() {
					t.Errorf("reset: %+v, want a probe at once", e.Circuit)
				}
			}
		})
	}
}

func TestEndpointThatOnlyFailsIsDisabledAfterFiveDays(t *testing.T) {
	for name, tt := range map[string]struct {
		health webhook.Health
		status webhook.Status
		want   string
	}{
		"20 in 5 days":       {inRow(20, 5*days), webhook.Active, "every attempt failed for 5 days; the last: connection refused"},
		"19 in 5 days":       {inRow(19, 5*days), webhook.Active, ""},
		"a millisecond less": {inRow(20, 5*days-time.Millisecond), webhook.Active, ""},
		"100 in 4 days":      {inRow(100, 4*days), webhook.Active, ""},
		"paused":             {inRow(20, 6*days), webhook.Paused, ""},
		"disabled already":   {inRow(20, 6*days), webhook.Disabled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &webhook.Endpoint{Status: tt.status, Circuit: openSince(5*days, time.Hour), Lane: webhook.LaneSlow}
			next, got := e.NextRouting(tt.health, nil, now)
			if got != tt.want || got != "" && next.Circuit != nil {
				t.Errorf("%q with circuit %+v, want %q", got, next.Circuit, tt.want)
			}
		})
	}
}

func TestLaneFollowsHowAnEndpointDoes(t *testing.T) {
	both := func(run int, h webhook.Health) webhook.Health {
		h.Run.Count = run
		return h
	}
	const main, slow = webhook.LaneMain, webhook.LaneSlow
	for name, tt := range map[string]struct {
		health             webhook.Health
		fromMain, fromSlow webhook.Lane
	}{
		"nothing known":                   {recent(0, 0, 0), main, slow},
		"one good attempt":                {recent(1, 0, 0), main, main},
		"one good after a run":            {both(1, recent(1, 0, 0)), main, slow},
		"one slow attempt":                {recent(1, 0, 1), main, slow},
		"one failed attempt":              {recent(1, 1, 0), main, slow},
		"four slow attempts":              {recent(4, 0, 4), main, slow},
		"one slow of five":                {recent(5, 0, 1), slow, slow},
		"one slow of 19: p95 is slow":     {recent(19, 0, 1), slow, slow},
		"one slow of 20: p95 is not":      {recent(20, 0, 1), main, main},
		"two slow of 40":                  {recent(40, 0, 2), main, main},
		"three slow of 40":                {recent(40, 0, 3), slow, slow},
		"half of six failed":              {recent(6, 3, 0), slow, slow},
		"less than half of seven failed":  {recent(7, 3, 0), main, main},
		"five in a row, long ago":         {both(5, recent(0, 0, 0)), slow, slow},
		"four in a row, long ago":         {both(4, recent(0, 0, 0)), main, slow},
		"five in a row of a hundred":      {both(5, recent(100, 5, 0)), slow, slow},
		"four failed of eight in a row":   {both(4, recent(8, 4, 0)), slow, slow},
		"four failed of nine in a row":    {both(4, recent(9, 4, 0)), main, main},
		"five good attempts, fast enough": {recent(5, 0, 0), main, main},
	} {
		t.Run(name, func(t *testing.T) {
			for from, want := range map[webhook.Lane]webhook.Lane{main: tt.fromMain, slow: tt.fromSlow} {
				e := &webhook.Endpoint{Status: webhook.Active, Lane: from}
				if got, _ := e.NextRouting(tt.health, nil, now); got.Lane != want {
					t.Errorf("%s, from %q: to %q, want %q", name, from, got.Lane, want)
				}
			}
		})
	}
}

// Failures from before a circuit closed open it again at no time, neither
// while it drains nor after.
func TestOnlyAttemptsAfterItClosedOpenACircuitAgain(t *testing.T) {
	e := &webhook.Endpoint{Status: webhook.Active, CreatedAt: now.Add(-days)}
	tally, at := &webhook.Tally{}, now
	attempts := func(n int, reason string) webhook.Routing {
		for range n {
			at = at.Add(100 * time.Millisecond)
			tally, _ = counting(tally, e.HealthStart(), at, attempt(at, 0, reason))
		}
		next, _ := e.NextRouting(tally.Health(e.HealthStart(), at), seen(reason == "", false, at), at)
		return next
	}
	if e.Circuit = attempts(49, "no").Circuit; e.Circuit != nil {
		t.Fatalf("49 attempts: %+v", e.Circuit)
	}
	if e.Circuit = attempts(1, "no").Circuit; !e.Circuit.Open() {
		t.Fatalf("50 failed attempts: %+v", e.Circuit)
	}
	if e.Circuit = attempts(1, "").Circuit; e.Circuit.Open() || e.Circuit.ClosedAt == nil || *e.Circuit.ClosedAt != at {
		t.Fatalf("after a success: %+v", e.Circuit)
	}
	if e.Circuit = attempts(49, "no").Circuit; e.Circuit.Open() {
		t.Fatalf("49 failed attempts after it closed: %+v", e.Circuit)
	}
	if e.Circuit = attempts(1, "no").Circuit; !e.Circuit.Open() || e.Circuit.OpenedAt != at {
		t.Fatalf("50 failed attempts after it closed: %+v", e.Circuit)
	}
	e.Circuit = attempts(1, "").Circuit
	for !e.Circuit.Settled(at) {
		at = at.Add(time.Second)
	}
	if waited := at.Std().Sub(e.Circuit.ClosedAt.Std()); waited > 5*time.Minute+time.Second {
		t.Errorf("settled after %s", waited)
	}
	e.Circuit = nil
	if next := attempts(1, "no").Circuit; next != nil {
		t.Errorf("what was before opened the circuit again: %+v", next)
	}
}

func TestOpenCircuitHoldsEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		status      webhook.Status
		application webhook.ApplicationState
		circuit     *webhook.Circuit
		want        webhook.HeldReason
	}{
		"none":                   {webhook.Active, webhook.ApplicationActive, nil, ""},
		"open":                   {webhook.Active, webhook.ApplicationActive, openSince(0, 0), webhook.HeldCircuitOpen},
		"draining":               {webhook.Active, webhook.ApplicationActive, draining(), ""},
		"open and paused":        {webhook.Paused, webhook.ApplicationActive, openSince(0, 0), webhook.HeldPaused},
		"open and disabled":      {webhook.Disabled, webhook.ApplicationActive, openSince(0, 0), webhook.HeldDisabled},
		"open and suspended":     {webhook.Active, webhook.ApplicationSuspended, openSince(0, 0), webhook.HeldSuspended},
		"paused and suspended":   {webhook.Paused, webhook.ApplicationSuspended, nil, webhook.HeldSuspended},
		"disabled by the server": {webhook.Disabled, webhook.ApplicationActive, nil, webhook.HeldDisabled},
		"of no application":      {webhook.Active, webhook.ApplicationAbsent, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &webhook.Endpoint{Status: tt.status, Circuit: tt.circuit}
			if got, gone := webhook.MaySend(e, tt.application); got != tt.want || gone != (tt.application == webhook.ApplicationAbsent) {
				t.Errorf("held for %q, gone %t; want %q", got, gone, tt.want)
			}
		})
	}
}

func TestOwnersChangeHasTheEndpointJudgedAnew(t *testing.T) {
	given := func(s string) account.Patch[string] { return account.Patch[string]{Given: true, Value: s} }
	status := func(s webhook.Status) webhook.UpdateWebhookEndpointDto {
		return webhook.UpdateWebhookEndpointDto{Status: account.Patch[webhook.Status]{Given: true, Value: s}}
	}
	reset := openSince(time.Hour, 0)
	for name, tt := range map[string]struct {
		was     webhook.Status
		dto     webhook.UpdateWebhookEndpointDto
		changes bool
		anew    bool
	}{
		"nothing":             {webhook.Active, webhook.UpdateWebhookEndpointDto{}, false, false},
		"another url":         {webhook.Active, webhook.UpdateWebhookEndpointDto{URL: given("https://b.example")}, true, true},
		"the same url":        {webhook.Active, webhook.UpdateWebhookEndpointDto{URL: given("https://a.example")}, false, false},
		"a description":       {webhook.Active, webhook.UpdateWebhookEndpointDto{Description: given("d")}, true, false},
		"cleared already":     {webhook.Active, webhook.UpdateWebhookEndpointDto{Description: account.Patch[string]{Given: true, Null: true}}, false, false},
		"other events":        {webhook.Active, webhook.UpdateWebhookEndpointDto{Events: account.Patch[[]string]{Given: true, Value: []string{"order.*"}}}, true, false},
		"the same status":     {webhook.Active, status(webhook.Active), false, false},
		"paused":              {webhook.Active, status(webhook.Paused), true, false},
		"activated":           {webhook.Paused, status(webhook.Active), true, true},
		"activated, disabled": {webhook.Disabled, status(webhook.Active), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := &webhook.Endpoint{
				URL: "https://a.example", Status: tt.was, SubscribedEvents: []string{"*"}, CreatedAt: now.Add(-days), UpdatedAt: now, HealthSince: now - 10,
				Circuit: openSince(time.Hour, 32*time.Minute), Lane: webhook.LaneSlow,
			}
			e.Circuit.ProbeAt = now.Add(20 * time.Minute)
			got, err := e.Update(tt.dto, now)
			if err != nil || (got != e) != tt.changes || tt.changes && got.UpdatedAt != now+1 {
				t.Fatalf("%+v, %v; want a change %t", got, err, tt.changes)
			}
			since, circuit := now-10, e.Circuit
			if tt.anew {
				since, circuit = now, reset
			}
			want := webhook.Routing{Circuit: circuit, Lane: webhook.LaneSlow}
			if !got.Routing().Equal(want) || got.HealthSince != since || got.HealthStart() != since {
				t.Errorf("since %s, %+v; want since %s, %+v", got.HealthSince, got.Circuit, since, circuit)
			}
			if e.Circuit.ProbeAt != now.Add(20*time.Minute) {
				t.Error("the endpoint that was changed")
			}
		})
	}
}

func TestDrainingGoesOnAtOnceWhenItsOwnerActivatesTheEndpoint(t *testing.T) {
	c := draining()
	if got := c.OwnerReset(now); *got.ClosedAt != now || got.State != webhook.CircuitDraining || *c.ClosedAt != now-1000 {
		t.Errorf("%+v, from %+v", got, c)
	}
	if got := (*webhook.Circuit)(nil).OwnerReset(now); got != nil {
		t.Errorf("none became %+v", got)
	}
}

func TestJudgedSinceIsTheLatestBeginning(t *testing.T) {
	closed := openSince(time.Hour, time.Minute).Drain(now)
	for name, tt := range map[string]struct {
		e    webhook.Endpoint
		want value.Time
	}{
		"of old":         {webhook.Endpoint{CreatedAt: now - 5}, now - 5},
		"changed":        {webhook.Endpoint{CreatedAt: now - 5, HealthSince: now - 3}, now - 3},
		"open":           {webhook.Endpoint{CreatedAt: now - 5, HealthSince: now - 3, Circuit: openSince(0, 0)}, now - 3},
		"closed":         {webhook.Endpoint{CreatedAt: now - 5, HealthSince: now - 3, Circuit: closed}, now},
		"changed behind": {webhook.Endpoint{CreatedAt: now - 5, HealthSince: now + 3, Circuit: closed}, now + 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.e.HealthStart(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestCircuitAtRestReadsBack(t *testing.T) {
	for _, c := range []*webhook.Circuit{openSince(time.Hour, 90*time.Second), draining()} {
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got webhook.Circuit
		if err := json.Unmarshal(body, &got); err != nil || !got.Equal(c) {
			t.Errorf("%s reads as %+v, %v; want %+v", body, got, err, c)
		}
	}
	const want = `{"state":"OPEN","openedAt":"2026-11-21T05:35:41.242Z","probeAt":"2026-11-21T06:35:41.242Z","intervalMs":90000}`
	if body, err := json.Marshal(openSince(time.Hour, 90*time.Second)); string(body) != want || err != nil {
		t.Errorf("%s, %v; want %s", body, err, want)
	}
}

func TestRoutingsAreCompared(t *testing.T) {
	conditions := func() []webhook.Routing {
		return []webhook.Routing{
			{},
			{Lane: webhook.LaneSlow},
			{Circuit: openSince(0, time.Minute)},
			{Circuit: openSince(0, time.Minute), Lane: webhook.LaneSlow},
			{Circuit: openSince(time.Second, time.Minute)},
			{Circuit: openSince(0, time.Hour)},
			{Circuit: openSince(0, time.Minute).Drain(now)},
			{Circuit: openSince(0, time.Minute).Drain(now + 1)},
			{Circuit: openSince(0, time.Minute).OwnerReset(now + 1)},
			{Circuit: openSince(0, time.Minute).Redeliver(value.ID{1}, now)},
			{Circuit: openSince(0, time.Minute).Redeliver(value.ID{2}, now)},
		}
	}
	for i, a := range conditions() {
		for j, b := range conditions() {
			if a.Equal(b) != (i == j) {
				t.Errorf("%+v equals %+v: %t", a, b, i != j)
			}
		}
	}
}
