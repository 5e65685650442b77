package chaos

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// attempt is what a worker logs of a request, once it has an answer or has given
// up.
type attempt struct {
	at         time.Time
	pid        int
	delivery   value.ID
	status     int // 0: no answer
	invocation string
}

// complaint is an error that a function logs.
type complaint struct {
	at       time.Time
	function string
	pid      int
	delivery value.ID // zero when it is about none
}

// serviceLog reads what the service writes while it runs, and passes warnings
// and errors on. It is safe for concurrent use.
type serviceLog struct {
	out io.Writer

	mu         sync.Mutex
	rest       []byte // of a line that is not complete
	attempts   []attempt
	complaints []complaint
	messages   map[string]int // of complaints and warnings, by function and message
}

func newServiceLog(out io.Writer) *serviceLog {
	return &serviceLog{out: out, messages: map[string]int{}}
}

// Write takes output of the service.
func (l *serviceLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.read(line)
		l.rest = append(l.rest[:0], rest...)
	}
}

// read takes one line: of a function "name[pid] {…}", else the runner's own.
func (l *serviceLog) read(line []byte) {
	source, text, _ := bytes.Cut(line, []byte(" "))
	function, rest, _ := strings.Cut(string(source), "[")
	pid, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	var logged struct {
		Timestamp  time.Time `json:"timestamp"`
		Level      string    `json:"level"`
		Message    string    `json:"message"`
		DeliveryID string    `json:"deliveryId"`
		Status     int       `json:"status"`
		RequestID  string    `json:"requestId"`
	}
	structured := err == nil && json.Unmarshal(text, &logged) == nil
	delivery, err := value.ParseID(logged.DeliveryID)
	if err != nil {
		delivery = value.ID{}
	}
	switch {
	case structured && logged.Message == "attempt":
		l.attempts = append(l.attempts, attempt{logged.Timestamp, pid, delivery, logged.Status, logged.RequestID})
		return
	case structured && logged.Level == "INFO", bytes.Contains(line, []byte("level=INFO")):
		return
	case structured && logged.Level == "ERROR":
		l.complaints = append(l.complaints, complaint{logged.Timestamp, function, pid, delivery})
	}
	if structured {
		l.messages[function+": "+logged.Message]++
	}
	fmt.Fprintf(l.out, "%s\n", line)
}
