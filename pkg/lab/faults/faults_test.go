package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// harness is a table behind a proxy, with a client that does not try again and
// one that goes around the proxy.
type harness struct {
	t              *testing.T
	proxy          *faults.Proxy
	faulty, direct *dynamodb.Client
	table          string
}

func newHarness(t *testing.T, cfg faults.Config) *harness {
	t.Helper()
	w := &harness{t: t}
	w.direct, w.table = dynamotest.Client(t)
	var err error
	if w.proxy, err = faults.New(*w.direct.Options().BaseEndpoint, cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.proxy.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.proxy.Close() })
	w.faulty = dynamodb.New(w.direct.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Retryer = aws.String(w.proxy.Endpoint()), aws.NopRetryer{}
	})
	return w
}

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func key(sk string) item { return item{"PK": text("p"), "SK": text(sk)} }

func thing(sk, v string) item {
	return item{"PK": text("p"), "SK": text(sk), "v": text(v), "w": text("w")}
}

func (w *harness) put(c *dynamodb.Client, it item) error {
	_, err := c.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: &w.table, Item: it})
	return err
}

func (w *harness) mustPut(it item) {
	w.t.Helper()
	if err := w.put(w.faulty, it); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) get(c *dynamodb.Client, sk string, consistent bool) (string, error) {
	out, err := c.GetItem(w.t.Context(), &dynamodb.GetItemInput{TableName: &w.table, Key: key(sk), ConsistentRead: &consistent})
	if err != nil {
		return "", err
	}
	return valueOf(out.Item), nil
}

func valueOf(it item) string {
	if v, ok := it["v"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// stored is the item's value in the table itself.
func (w *harness) stored(sk string) string {
	w.t.Helper()
	v, err := w.get(w.direct, sk, true)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func only(f faults.Fault) faults.Rates { return faults.Rates{f: 1} }

func (w *harness) transact(c *dynamodb.Client) error {
	_, err := c.TransactWriteItems(w.t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: &w.table, Item: thing("a", "1")}},
		{Put: &types.Put{TableName: &w.table, Item: thing("b", "1")}},
		{ConditionCheck: &types.ConditionCheck{TableName: &w.table, Key: key("c"), ConditionExpression: aws.String("attribute_not_exists(PK)")}},
	}})
	return err
}

func TestRefusalsHaveTheShapesOfTheRealOnesAndDoNothing(t *testing.T) {
	for _, c := range []struct {
		fault faults.Fault
		codes []string // what a single write may meet
	}{
		{faults.Throttle, []string{"ProvisionedThroughputExceededException", "ThrottlingException"}},
		{faults.InternalError, []string{"InternalServerError"}},
		{faults.Conflict, []string{"TransactionConflictException"}},
	} {
		w := newHarness(t, faults.Config{Rates: only(c.fault)})
		met := map[string]bool{}
		for range 30 {
			err := w.put(w.faulty, thing("a", "1"))
			var api smithy.APIError
			if !errors.As(err, &api) || !slices.Contains(c.codes, api.ErrorCode()) {
				t.Fatalf("%s: got %v, want one of %q", c.fault, err, c.codes)
			}
			met[api.ErrorCode()] = true
			again := retry.NewStandard().IsErrorRetryable(err)
			if want := c.fault != faults.Conflict; again != want {
				t.Errorf("%s: the SDK tries again after %v: %v, want %v", c.fault, err, again, want)
			}
		}
		if len(met) != len(c.codes) {
			t.Errorf("%s: met %v, want all of %q", c.fault, met, c.codes)
		}
		if got := w.stored("a"); got != "" {
			t.Errorf("%s: the write was done: %q", c.fault, got)
		}
		if got := w.proxy.Counts(); got.Of(c.fault) != 30 || got.Requests["PutItem"] != 30 {
			t.Errorf("%s: counted\n%s", c.fault, got)
		}
	}
}

func TestATransactionIsCancelledWithOneReason(t *testing.T) {
	w := newHarness(t, faults.Config{Rates: only(faults.Conflict)})
	hit := map[int]bool{}
	for range 40 {
		err := w.transact(w.faulty)
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 3 {
			t.Fatalf("got %v, want three reasons", err)
		}
		codes := ""
		for i, r := range cancelled.CancellationReasons {
			codes += *r.Code + " "
			if *r.Code == "TransactionConflict" {
				hit[i] = true
			}
		}
		if strings.Count(codes, "None") != 2 || strings.Count(codes, "TransactionConflict") != 1 {
			t.Fatalf("reasons %q, want one conflict", codes)
		}
		if !strings.Contains(cancelled.ErrorMessage(), strings.ReplaceAll(strings.TrimSpace(codes), " ", ", ")) {
			t.Errorf("message %q does not list %q", cancelled.ErrorMessage(), codes)
		}
	}
	if len(hit) != 3 {
		t.Errorf("conflicts at %v, want at every item", hit)
	}
	w.proxy.SetRates(only(faults.Throttle))
	throttled := false
	for range 40 {
		var cancelled *types.TransactionCanceledException
		if errors.As(w.transact(w.faulty), &cancelled) {
			throttled = throttled || strings.Contains(cancelled.ErrorMessage(), "ThrottlingError")
		}
	}
	if !throttled || w.stored("a") != "" {
		t.Errorf("cancelled for want of throughput: %v, stored %q", throttled, w.stored("a"))
	}
}

func TestATimeoutHangsUntilTheClientGivesUp(t *testing.T) {
	w := newHarness(t, faults.Config{Rates: only(faults.Timeout)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.faulty.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.table, Item: thing("a", "1")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the client's own deadline", err)
	}
	if got := w.stored("a"); got != "" {
		t.Errorf("the write was done: %q", got)
	}
}

func TestAHangEndsWithTheProxy(t *testing.T) {
	w := newHarness(t, faults.Config{Rates: only(faults.Timeout)})
	failed := make(chan error)
	go func() { failed <- w.put(w.faulty, thing("a", "1")) }()
	for w.proxy.Counts().Of(faults.Timeout) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the request never came")
		}
	}
	w.proxy.Close()
	if err := <-failed; err == nil {
		t.Error("the write succeeded")
	}
}

func TestWhetherALostWriteIsDoneDependsOnTheFault(t *testing.T) {
	for fault, done := range map[faults.Fault]string{
		faults.LostRequest: "", faults.LostAnswer: "1", faults.FalseError: "1",
	} {
		w := newHarness(t, faults.Config{Rates: only(fault)})
		for i := range 20 {
			sk := fmt.Sprint(i)
			err := w.put(w.faulty, thing(sk, "1"))
			if err == nil {
				t.Fatalf("%s: the client saw an answer", fault)
			}
			var api smithy.APIError
			if answered := errors.As(err, &api); answered != (fault == faults.FalseError) {
				t.Errorf("%s: got %v", fault, err)
			}
			if got := w.stored(sk); got != done {
				t.Errorf("%s: stored %q, want %q", fault, got, done)
			}
		}
	}
}

func TestABatchIsDoneByParts(t *testing.T) {
	w := newHarness(t, faults.Config{})
	left := types.KeysAndAttributes{ProjectionExpression: aws.String("#v"), ExpressionAttributeNames: map[string]string{"#v": "v"}, ConsistentRead: aws.Bool(true)}
	for n := range 9 {
		w.mustPut(thing(fmt.Sprint(n), "1"))
		left.Keys = append(left.Keys, key(fmt.Sprint(n)))
	}
	w.proxy.SetRates(only(faults.Unprocessed))
	found := 0
	for asked := (map[string]types.KeysAndAttributes{w.table: left}); len(asked) > 0; {
		out, err := w.faulty.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: asked})
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range out.Responses[w.table] {
			if valueOf(it) != "1" || len(it) != 1 {
				t.Errorf("got %v, want the value alone", it)
			}
			found++
		}
		if rest := len(out.UnprocessedKeys[w.table].Keys); rest >= len(asked[w.table].Keys) || rest == 0 && len(asked[w.table].Keys) > 1 {
			t.Fatalf("of %d keys %d were left, want some and not all", len(asked[w.table].Keys), rest)
		}
		asked = out.UnprocessedKeys
	}
	if counts := w.proxy.Counts(); found != 9 || counts.Of(faults.Unprocessed) < 2 {
		t.Errorf("found %d items, want 9; counted\n%s", found, counts)
	}
}

func TestAProxyCountsTheUnitsOfWhatTheServerDoes(t *testing.T) {
	m := faults.NewMeter()
	w := newHarness(t, faults.Config{Meter: m})
	w.mustPut(thing("x", strings.Repeat("x", 5000)))
	w.proxy.SetRates(only(faults.Throttle))
	if err := w.put(w.faulty, thing("x", "1")); err == nil {
		t.Error("a put was done that is throttled")
	}
	if got, want := m.Total(), (faults.Units{Calls: 1, Writes: 5}); got != want {
		t.Errorf("a put of 5,000 bytes, and one that did not reach the server: got %+v, want %+v", got, want)
	}
}

func TestRequestsOnItemsAreDelayed(t *testing.T) {
	w := newHarness(t, faults.Config{})
	const requests, delay = 20, 20 * time.Millisecond
	w.proxy.SetDelay(delay)
	begin := time.Now()
	for range requests {
		w.mustPut(thing("a", "1"))
	}
	if took := time.Since(begin); took < requests*delay/4 {
		t.Errorf("%d requests took %s, want about %s each", requests, took, delay)
	}
}

func TestFaultsCanBeSwitchedWhileTheProxyRuns(t *testing.T) {
	w := newHarness(t, faults.Config{Rates: only(faults.Throttle)})
	check := func(when string, fails bool) {
		t.Helper()
		if err := w.put(w.faulty, thing("a", "1")); (err != nil) != fails {
			t.Errorf("%s: got %v, want a failure: %v", when, err, fails)
		}
	}
	check("at first", true)
	w.proxy.Off()
	check("switched off", false)
	w.proxy.On()
	check("switched on", true)
	w.proxy.SetOperation("PutItem", nil)
	check("with rates of its own", false)
	if _, err := w.get(w.faulty, "a", true); err == nil {
		t.Error("another operation lost its rates")
	}
	w.proxy.SetRates(nil)
	if _, err := w.get(w.faulty, "a", true); err != nil {
		t.Errorf("without rates: %v", err)
	}
}

func TestOneClientMeetsTheSameFaultsWithTheSameSeed(t *testing.T) {
	var runs []string
	for range 2 {
		w := newHarness(t, faults.Config{Seed: 7, Rates: faults.Every(0.3, faults.Throttle, faults.LostAnswer, faults.FalseError)})
		met := ""
		for i := range 40 {
			err := w.put(w.faulty, thing(fmt.Sprint(i), "1"))
			var api smithy.APIError
			switch {
			case err == nil:
				met += "-"
			case errors.As(err, &api):
				met += api.ErrorCode()[:1]
			default:
				met += "x"
			}
		}
		runs = append(runs, met)
	}
	if runs[0] != runs[1] || !strings.Contains(runs[0], "x") || !strings.Contains(runs[0], "-") {
		t.Errorf("two runs with one seed:\n%s\n%s", runs[0], runs[1])
	}
}
