// Package servicetest is the fixture that the service's tests share: a fresh
// table with its stream, fresh queues, a clock that the test moves, and one
// organization with one application. Its methods create what deliveries need,
// through the table's own code, so that no test types a key or an attribute
// name again. When a test ends, a secret may be nowhere in its log, its answers
// and its table but in the answer that made it: what is tested logs to Leaks, which
// also watches the answers of a handler. A package adds what it tests in a harness of its own:
//
//	type harness struct {
//		*servicetest.Service
//		*sweeper.Sweeper
//	}
//
// A test that needs only a table, or only queues, takes dynamotest or
// queuetest. With -short tests that use this package are skipped.
package servicetest

import (
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/leaks"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

// Logical ids of the template's queues.
const (
	MainQueue = "DeliveriesQueue"
	SlowQueue = "SlowDeliveriesQueue"
	ParkQueue = "ParkQueue"
)

// Service is the state that the functions work on, seen by one organization.
type Service struct {
	*Clock
	Table  *dynamo.Table
	Queues func() *queuetest.Queues // the first call starts them
	Box    *sealed.Box              // seals the endpoints' secrets
	Org    value.ID
	App    value.ID     // an active application of the organization
	Leaks  *leaks.Watch // of what logs to it and of the secrets that the fixture makes

	stream  *stream
	counted *stream // read by CountStream
}

// New returns a service whose clock starts at the system's time.
func New(t testing.TB) *Service {
	t.Helper()
	client, name := dynamotest.Client(t)
	clock := &Clock{now: time.Now()}
	s := onTable(t, dynamo.New(client, name, clock.Time), clock)
	s.Leaks = WatchLeaks(t, client, name)
	s.stream, s.counted = &stream{table: client, name: name}, &stream{table: client, name: name}
	s.Queues = sync.OnceValue(func() *queuetest.Queues { return queuetest.Start(t) })
	return s.Organization(t)
}

// OnTable returns a service on a table of the test's own, without queues and
// stream, as the given organization sees it. An application is created for it.
func OnTable(t testing.TB, table *dynamo.Table, org value.ID) *Service {
	t.Helper()
	s := onTable(t, table, &Clock{now: time.Now()})
	s.Org = org
	s.App = s.Application(t)
	return s
}

func onTable(t testing.TB, table *dynamo.Table, clock *Clock) *Service {
	t.Helper()
	box, err := sealed.NewBox(make([]byte, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return &Service{Clock: clock, Table: table, Box: box, Leaks: leaks.New()}
}

// Organization returns the same service as another organization sees it, with
// an application of its own.
func (s *Service) Organization(t testing.TB) *Service {
	t.Helper()
	other := *s
	other.Org = value.NewID()
	other.App = other.Application(t)
	return &other
}

// OfApplication returns the same service with another application of the
// organization as the one that endpoints are created for.
func (s *Service) OfApplication(app value.ID) *Service {
	other := *s
	other.App = app
	return &other
}

// Application stores another application of the organization.
func (s *Service) Application(t testing.TB) value.ID {
	t.Helper()
	name := "app"
	app := account.NewApplication(s.Org, value.NewID(), account.CreateApplicationDto{Name: &name}, s.Now())
	s.Leaks.Made(app.ClientSecret)
	if err := s.Table.CreateApplication(t.Context(), s.Org, app, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	return app.ID
}

// Suspend suspends an application of the organization.
func (s *Service) Suspend(t testing.TB, app value.ID) {
	t.Helper()
	if _, err := s.Table.ChangeApplication(t.Context(), s.Org, app, func(a *account.Application) (bool, error) {
		return a.SetStatus(account.Suspended, s.Now()), nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Clock is a clock that stands still until the test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Time is the clock's time, as what is tested takes it.
func (c *Clock) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to a time.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Pass moves the clock on.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Now is the clock's time as the service stores it.
func (c *Clock) Now() value.Time { return value.TimeOf(c.Time()) }

// At is the time that lies so far ahead of the clock's, or behind.
func (c *Clock) At(ahead time.Duration) value.Time { return value.TimeOf(c.Time().Add(ahead)) }
