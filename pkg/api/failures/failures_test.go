package failures_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/api/failures"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// scene is a table, and a clock that the test moves.
type scene struct {
	*dynamo.Table
	t        *testing.T
	now      time.Time
	org, app value.ID
	n        int // requests so far
	writes   int
	broken   bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, now: time.Date(2026, 11, 21, 6, 35, 1, 0, time.UTC), org: value.NewID(), app: value.NewID()}
	client, name := dynamotest.Client(t)
	s.Table = dynamo.New(client, name, s.clock)
	return s
}

func (s *scene) clock() time.Time { return s.now }

func (s *scene) log() *failures.Log { return failures.New(s, s.clock, slog.New(slog.DiscardHandler)) }

func (s *scene) PutFailures(ctx context.Context, org, app value.ID, minute value.Time, number int, requests []failures.FailedRequest) (bool, error) {
	if s.broken {
		return false, errors.New("throttled")
	}
	ctx = context.WithoutCancel(ctx) // a slow machine may take longer than a write may
	done, err := s.Table.PutFailures(ctx, org, app, minute, number, requests)
	if done {
		s.writes++
	}
	return done, err
}

// fail notes n failed requests, each a millisecond after the one before.
func (s *scene) fail(l *failures.Log, n int) {
	for range n {
		s.n++
		s.now = s.now.Add(time.Millisecond)
		l.Note(s.t.Context(), s.org, s.app, &failures.FailedRequest{RequestID: fmt.Sprint(s.n), At: value.TimeOf(s.now), Query: []string{}})
	}
}

// shows fails unless the application shows the requests with these numbers, the
// latest first, after so many writes.
func (s *scene) shows(writes int, from, to int) {
	s.t.Helper()
	found, err := s.Failures(s.t.Context(), s.org, s.app)
	if err != nil {
		s.t.Fatal(err)
	}
	var got, want []string
	for _, r := range found {
		got = append(got, r.RequestID)
	}
	for n := from; n >= to; n-- {
		want = append(want, fmt.Sprint(n))
	}
	if diff := cmp.Diff(want, got); diff != "" || s.writes != writes {
		s.t.Errorf("after %d writes, want %d (-want +got):\n%s", s.writes, writes, diff)
	}
}

func TestAFailedRequestIsShownAtOnceAndSixWritesAMinuteAreMade(t *testing.T) {
	s := newScene(t)
	l := s.log()
	s.fail(l, 6)
	s.shows(6, 6, 1)
	s.fail(l, 30)
	s.shows(6, 6, 1)
	s.now = s.now.Add(time.Minute)
	l.Note(t.Context(), s.org, s.app, nil) // one that did not fail
	s.shows(7, 36, 1)
	l.Note(t.Context(), s.org, s.app, nil)
	s.shows(7, 36, 1)
	if found, err := s.Failures(t.Context(), value.NewID(), s.app); err != nil || len(found) > 0 {
		t.Errorf("to another organization: %v, %v", found, err)
	}
	s.now = s.now.Add(failures.Retention)
	s.shows(7, 0, 1)
}

func TestInstancesShareTheWritesOfAMinute(t *testing.T) {
	s := newScene(t)
	one, other := s.log(), s.log()
	s.fail(one, 6)
	s.fail(other, 6) // each finds its write taken
	s.shows(6, 6, 1)
	s.now = s.now.Add(time.Minute)
	s.fail(other, 1)
	s.shows(7, 13, 1)
}

func TestWhatCannotBeWrittenWaitsAndTheLatestFiftyStay(t *testing.T) {
	s := newScene(t)
	l := s.log()
	s.broken = true
	s.fail(l, 60)
	s.broken = false
	s.now = s.now.Add(time.Minute)
	s.fail(l, 1)
	s.shows(1, 61, 12)
}

func TestTheLastTwoHundredAreShown(t *testing.T) {
	s := newScene(t)
	l := s.log()
	for range 5 {
		s.fail(l, 50)
		s.now = s.now.Add(time.Minute)
	}
	l.Note(t.Context(), s.org, s.app, nil)
	found, err := s.Failures(t.Context(), s.org, s.app)
	if err != nil || len(found) != failures.Shown || found[0].RequestID != "250" {
		t.Errorf("got %d requests, %v, want the last %d", len(found), err, failures.Shown)
	}
}

func TestNamesOfParametersAreKeptAndNoSecretInTheirPlace(t *testing.T) {
	query := map[string][]string{"limit": {"500"}, "colour": nil, strings.Repeat("a", 32): nil, strings.Repeat("b", 33): nil}
	if diff := cmp.Diff([]string{strings.Repeat("a", 32), "colour", "limit"}, failures.Names(query)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for i := range 30 {
		query[fmt.Sprint(i)] = nil
	}
	if got := len(failures.Names(query)); got != 20 {
		t.Errorf("got %d names, want 20", got)
	}
}
