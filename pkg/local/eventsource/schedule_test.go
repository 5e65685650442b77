package eventsource

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestASchedulesInvocationsAreItsEventsAndNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, now := time.Now(), 0
		var payloads [][]byte
		schedule := NewSchedule(Function{Name: "sweeper", Timeout: time.Hour, Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
			if now++; now > 1 {
				t.Error("an invocation began while another ran")
			}
			payloads = append(payloads, payload)
			<-time.After(150 * time.Second) // two ticks come meanwhile
			now--
			return nil, errors.New("failed")
		}}, ScheduleConfig{Host: Host{Region: region}, Every: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		go schedule.Run(ctx)
		pass(8 * time.Minute)
		cancel()
		pass(time.Hour)
		if len(payloads) != 3 {
			t.Errorf("%d invocations, want one after each that has ended", len(payloads))
		}
		var got map[string]any
		if err := json.Unmarshal(payloads[0], &got); err != nil {
			t.Fatal(err)
		}
		if id, _ := got["id"].(string); len(id) != 36 {
			t.Errorf("id = %v, want a UUID", got["id"])
		}
		delete(got, "id")
		want := map[string]any{
			"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "account": "000000000000",
			"time": begun.Add(time.Minute).UTC().Format(time.RFC3339), "region": region, "resources": []any{}, "detail": map[string]any{},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	})
}
