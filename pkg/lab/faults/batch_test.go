package faults_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/lab/faults"
)

// insert creates things of the value 1 in one batch.
func (w *harness) insert(c *dynamodb.Client, sks ...string) ([]types.BatchStatementResponse, error) {
	statement := `INSERT INTO "` + w.table + `" VALUE {'PK': ?, 'SK': ?, 'v': ?}`
	in := &dynamodb.BatchExecuteStatementInput{}
	for _, sk := range sks {
		in.Statements = append(in.Statements, types.BatchStatementRequest{
			Statement: &statement, Parameters: []types.AttributeValue{text("p"), text(sk), text("1")},
		})
	}
	out, err := c.BatchExecuteStatement(w.t.Context(), in)
	if err != nil {
		return nil, err
	}
	return out.Responses, nil
}

func TestStatementsOfABatchFailOnTheirOwn(t *testing.T) {
	w := newHarness(t, faults.Config{Rates: only(faults.Unprocessed)})
	met := map[types.BatchStatementErrorCodeEnum]bool{}
	whole := 0
	for round := range 30 {
		sks := make([]string, 1+round%5)
		for i := range sks {
			sks[i] = fmt.Sprint(round, "-", i)
		}
		answers, err := w.insert(w.faulty, sks...)
		if err != nil || len(answers) != len(sks) {
			t.Fatalf("%d statements: %d answers, %v", len(sks), len(answers), err)
		}
		failed := 0
		for i, a := range answers {
			want := "1"
			if a.Error != nil {
				failed, want = failed+1, ""
				met[a.Error.Code] = true
			}
			if got := w.stored(sks[i]); got != want {
				t.Errorf("statement %d of %d, %+v: stored %q, want %q", i, len(sks), a.Error, got, want)
			}
		}
		if failed == 0 {
			t.Errorf("round %d: nothing failed", round)
		}
		if failed == len(sks) {
			whole++
		}
	}
	want := map[types.BatchStatementErrorCodeEnum]bool{"ThrottlingError": true, "ProvisionedThroughputExceeded": true}
	if !maps.Equal(met, want) || whole == 0 || whole == 30 {
		t.Errorf("met %v, want %v; %d batches failed whole, want some", met, want, whole)
	}
	if counts := w.proxy.Counts(); counts.Of(faults.Unprocessed) != 30 {
		t.Errorf("counted\n%s", counts)
	}
}

func TestAFailedStatementLeavesTheAnswersOfOthersAtTheirPlaces(t *testing.T) {
	w := newHarness(t, faults.Config{})
	if _, err := w.insert(w.faulty, "b", "d"); err != nil {
		t.Fatal(err)
	}
	w.proxy.SetRates(only(faults.Unprocessed))
	sks := []string{"a", "b", "c", "d"}
	answers, err := w.insert(w.faulty, sks...)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		was := sks[i] == "b" || sks[i] == "d"
		throttled := a.Error != nil && a.Error.Code != types.BatchStatementErrorCodeEnumDuplicateItem
		duplicate := a.Error != nil && !throttled
		if !throttled && duplicate != was {
			t.Errorf("%s, which was there: %t: got the answer %+v", sks[i], was, a.Error)
		}
	}
}

func TestABatchOfStatementsFailsWhole(t *testing.T) {
	for fault, done := range map[faults.Fault]string{
		faults.Throttle: "", faults.InternalError: "", faults.LostRequest: "", faults.LostAnswer: "1", faults.FalseError: "1",
	} {
		w := newHarness(t, faults.Config{Rates: only(fault)})
		_, err := w.insert(w.faulty, "a", "b")
		var api smithy.APIError
		lost := fault == faults.LostRequest || fault == faults.LostAnswer
		if err == nil || errors.As(err, &api) == lost {
			t.Errorf("%s: got %v", fault, err)
		}
		if got := w.stored("a") + w.stored("b"); got != done+done {
			t.Errorf("%s: stored %q, want each %q", fault, got, done)
		}
	}
}
