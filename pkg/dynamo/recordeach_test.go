package dynamo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// recordEach writes outcomes, and expects the conflict.
func (r *recorded) recordEach(outcomes []webhook.DeliveryChange, want *webhook.WriteConflict) {
	r.t.Helper()
	conflict, err := r.table.RecordEach(r.t.Context(), outcomes)
	if err != nil || cmp.Diff(conflict, want) != "" {
		r.t.Fatalf("RecordEach: %v\n%s", err, cmp.Diff(conflict, want))
	}
}

func TestOutcomesForTheStreamAreWrittenEachOnItsOwn(t *testing.T) {
	for name, rows := range map[string]int{"none": 0, "one": 1, "several": 30} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t, dynamotest.NewTable(t), rows)
			var all []int
			for i := range rows {
				all = append(all, i)
			}
			outcomes, want := r.outcomes(all...), map[int]*webhook.Delivery{}
			for i, o := range outcomes {
				want[i] = o.Next
			}
			r.recordEach(outcomes, nil)
			r.check(0, want) // the stream counts them
			r.recordEach(outcomes, nil)
		})
	}
}

func TestOutcomeForTheStreamLeavesWhatOthersHaveChanged(t *testing.T) {
	for name, others := range map[string][]int{"alone": nil, "with others": {0, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t, dynamotest.NewTable(t), 5)
			held := r.rows[1].Hold(webhook.HeldPaused, r.now+5)
			if _, err := r.table.PutDelivery(t.Context(), r.rows[1], held); err != nil {
				t.Fatal(err)
			}
			outcomes := r.outcomes(append([]int{1}, others...)...)
			absent := *r.rows[2]
			absent.ID = value.NewID()
			if others != nil {
				outcomes = append(outcomes, webhook.DeliveryChange{Previous: &absent, Next: absent.Cancel(r.now)})
			}
			want := &webhook.WriteConflict{Deliveries: map[int]*webhook.Delivery{0: held}, Recorded: map[int]bool{}, Shards: map[int]webhook.StoredCounterShard{}}
			for i := range others {
				want.Recorded[i+1], want.Deliveries[len(others)+1] = true, nil
			}
			r.recordEach(outcomes, want)
			r.check(0, map[int]*webhook.Delivery{1: held})
		})
	}
}

func TestOutcomeForTheStreamWhoseAnswerIsLostIsRecordedOnce(t *testing.T) {
	for operation, rows := range map[string][]int{"PutItem": {0}, "BatchExecuteStatement": {0, 1}} {
		t.Run(operation, func(t *testing.T) {
			table, proxy := faultyTable(t, nil)
			r := newRecorded(t, table, 3)
			proxy.SetOperation(operation, faults.Rates{faults.FalseError: 1})
			// The SDK repeats a put, which then meets its own write.
			conflict, err := r.table.RecordEach(t.Context(), r.outcomes(rows...))
			if conflict != nil || err != nil && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("RecordEach without an answer: %+v, %v", conflict, err)
			}
			proxy.SetRates(nil)
			r.recordEach(r.outcomes(append(rows, 2)...), map[bool]*webhook.WriteConflict{
				true:  {Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{0: true, 1: true}, Shards: map[int]webhook.StoredCounterShard{}},
				false: {Deliveries: map[int]*webhook.Delivery{}, Recorded: map[int]bool{0: true, 1: true, 2: true}, Shards: map[int]webhook.StoredCounterShard{}},
			}[len(rows) == 1])
			r.check(0, map[int]*webhook.Delivery{0: r.outcomes(0)[0].Next, 2: r.outcomes(2)[0].Next})
		})
	}
}
