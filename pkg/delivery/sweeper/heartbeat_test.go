package sweeper_test

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/template/alarmtest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// The stream brings the heartbeat of every minute, also while there is nothing
// to do: a write that changes nothing would not be in the stream.
func TestEachRunWritesAHeartbeat(t *testing.T) {
	h := newHarness(t)
	for range 3 {
		h.sweep(t)
		if beats := h.StreamRecords(t, dynamo.StreamBeat); len(beats) != 1 {
			t.Errorf("a run has %d heartbeats in the stream, want 1", len(beats))
		}
		h.Pass(time.Minute)
	}
	alarmtest.FiresByLog(t, dynamotest.Model(t), "SweeperSilentAlarm", h.Leaks.Log())
}
