package chaos

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	storeTime = 22 * time.Second // more than the worker tries to store an outcome
	logTime   = 2 * time.Second  // more than a request takes to its receiver, and an answer to the worker's line
	unproved  = "without a cause"
)

// attempt is what the worker has logged after one.
type attempt struct {
	Text       string     `json:"message"`
	Logged     time.Time  `json:"timestamp"`
	DeliveryID value.ID   `json:"deliveryId"`
	RequestID  string     `json:"requestId"` // of the invocation
	Error      string     `json:"error"`
	Status     int        `json:"status"`
	Took       int64      `json:"took"` // ns
	At         value.Time `json:"at"`   // by the worker's clock, as in the delivery
}

// from is how far from a time the attempt began.
func (a attempt) from(at time.Time) time.Duration {
	return a.Logged.Add(-time.Duration(a.Took)).Sub(at).Abs()
}

var killed = regexp.MustCompile(`^time=(\S+) .*msg="instance ended" function=worker .*RequestId: (\S+) `)

// readLog reads the service's log. The last line of a process that was killed may be cut.
func (e *evidence) readLog(path string) error {
	log, err := os.ReadFile(path)
	for line := range bytes.Lines(log) {
		var a attempt
		if found := killed.FindSubmatch(line); found != nil {
			e.killed[string(found[2])], _ = time.Parse(time.RFC3339, string(found[1])) // as slog writes it
		} else if err := json.Unmarshal(line, &a); err == nil && a.Text == "attempt" && a.Status < 300 { // 0: no answer
			e.attempts[a.DeliveryID] = append(e.attempts[a.DeliveryID], a)
		} else if err == nil && a.Text != "attempt" {
			e.failed[a.RequestID+a.DeliveryID.String()] = a.Text + a.Error
		}
	}
	return err
}

// causes returns why the outcomes of the attempts that the receiver accepted are not stored, "" for one that is. An attempt
// that was not logged is left over once each line has the acceptance that is nearest to it.
func (e *evidence) causes(d *webhook.Delivery) (causes []string) {
	left := slices.Clone(e.accepted[d.ID])
	for _, a := range e.attempts[d.ID] {
		slices.SortFunc(left, func(x, y time.Time) int { return cmp.Compare(a.from(x), a.from(y)) })
		if len(left) > 0 && a.from(left[0]) <= logTime {
			causes, left = append(causes, e.cause(d, a)), left[1:]
		}
	}
	for _, at := range left {
		kills := slices.AppendSeq(slices.Clone(e.restarts), maps.Values(e.killed))
		causes = append(causes, follows("a process was killed before it logged the answer", at.Add(-logTime), 2*logTime, kills))
	}
	return causes
}

func (e *evidence) cause(d *webhook.Delivery, a attempt) string {
	i := slices.IndexFunc(d.Attempts, func(stored webhook.Attempt) bool { return stored.At == a.At })
	_, died := e.killed[a.RequestID]
	switch failed := e.failed[a.RequestID+a.DeliveryID.String()]; {
	case i >= 0 && d.Attempts[i].Error == nil:
		return ""
	case i >= 0:
		return "the answer did not reach the worker"
	case strings.HasPrefix(failed, "another attempt was recorded"):
		return "two messages, or one that the queue gave out twice"
	case strings.Contains(failed, "write the outcome"):
		return "the table did not take the outcome"
	case failed != "":
		return unproved
	case died:
		return "a worker was killed before it stored the outcome"
	}
	return follows("the service was killed before it stored the outcome", a.Logged, storeTime, e.restarts)
}

// follows returns a cause if one of the kills comes within a span after a time.
func follows(cause string, at time.Time, span time.Duration, kills []time.Time) string {
	if slices.ContainsFunc(kills, func(kill time.Time) bool { return !kill.Before(at) && kill.Sub(at) <= span }) {
		return cause
	}
	return unproved
}
