package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// TestAJobThatStallsAndDiesLeavesTheIndexAsItWas stops a job that merges two
// parts before each of its requests in turn, for longer than replaced chunks
// keep their content, and lets it die one write later.
func TestAJobThatStallsAndDiesLeavesTheIndexAsItWas(t *testing.T) {
	client, name := dynamotest.Client(t)
	requests := 0
	for ; ; requests++ {
		tr := newTrial(t, client, name, faults.Config{})
		stalled := tr.stall(requests)
		tr.proxy.Close()
		if !stalled {
			break
		}
	}
	if requests < 8 {
		t.Errorf("the job had %d requests, and cannot have merged", requests)
	}
}

// stall tells whether the job had so many requests.
func (tr *trial) stall(requests int) bool {
	tr.t.Helper()
	what := fmt.Sprintf("stalled after %d requests, dead one write later", requests)
	tr.mergeable()
	const worker = "stalling"
	hold, ended := tr.process(worker).hold(requests), make(chan error, 1)
	go func() {
		_, err := tr.job(worker, tr.orgs[0], "orders")
		ended <- err
	}()
	stalled := true
	select {
	case <-hold.reached:
		tr.advance(3 * time.Minute)
		tr.process(worker).crashAfter(1)
		hold.release()
		<-ended
	case err := <-ended:
		if stalled = false; err != nil {
			tr.t.Fatalf("%s: %v", what, err)
		}
	}
	tr.expect(what, "orders")
	tr.advance(3 * time.Minute)
	tr.work("orders")
	tr.expect(what+", and the next job done", "orders")
	if damaged := tr.log.with("rebuilt"); len(damaged) > 0 {
		tr.t.Fatalf("%s: the index was damaged: %q", what, damaged)
	}
	return stalled
}

// mergeable gives two parts of the orders one segment less than are merged,
// and the tail what makes one more.
func (tr *trial) mergeable() {
	tr.t.Helper()
	months := []time.Time{time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	for round := range 8 {
		for n, month := range months {
			tr.put(tr.orgs[0], commerce.KindOrder, modelID(2*round+n), content{state: "PENDING", number: "n", created: month, placed: tr.clock()})
		}
		tr.indexAll()
		if round < 7 {
			tr.work("orders")
		}
	}
}
