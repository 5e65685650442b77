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

	"github.com/commerce-integration/service/pkg/value"
)

// attempt is what a worker says of a request that it has made, once it has an
// answer or has given up.
type attempt struct {
	at     time.Time
	pid    int
	row    value.ID
	status int    // 0: no answer
	by     string // the invocation that made it
}

// complaint is an error that a function logs.
type complaint struct {
	at       time.Time
	function string
	pid      int
	row      value.ID // zero when it is of none
}

// kill is the end of a process, or of all when function is "".
type kill struct {
	at       time.Time
	function string
	pid      int
}

// kept is how many of the last lines of the service's output are remembered.
const kept = 200

// notes is what the service itself tells while it runs. It is safe for
// concurrent use.
type notes struct {
	log io.Writer // gets what is worth a look

	mu         sync.Mutex
	attempts   []attempt
	complaints []complaint
	messages   map[string]int // of complaints and warnings, by function and message
	tail       []string
}

func newNotes(log io.Writer) *notes { return &notes{log: log, messages: map[string]int{}} }

// output takes what one run of the service writes.
func (n *notes) output() io.Writer { return &lines{each: n.read} }

// last returns the end of what was written.
func (n *notes) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.tail, "\n")
}

// read takes one line: of a function "name[pid] {…}", else the runner's own.
func (n *notes) read(line []byte) {
	source, text, _ := bytes.Cut(line, []byte(" "))
	function, pid, ok := processOf(string(source))
	var entry struct {
		Timestamp time.Time `json:"timestamp"`
		Level     string    `json:"level"`
		Message   string    `json:"message"`
		RowID     string    `json:"rowId"`
		Status    int       `json:"status"`
		RequestID string    `json:"requestId"`
		Error     string    `json:"error"`
	}
	structured := ok && json.Unmarshal(text, &entry) == nil
	row, err := value.ParseID(entry.RowID)
	if err != nil {
		row = value.ID{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case structured && entry.Message == "attempt":
		n.attempts = append(n.attempts, attempt{entry.Timestamp, pid, row, entry.Status, entry.RequestID})
		return
	case structured && entry.Level == "INFO":
		return
	case structured && entry.Level == "ERROR":
		n.complaints = append(n.complaints, complaint{entry.Timestamp, function, pid, row})
	}
	if structured {
		n.messages[function+": "+entry.Message]++
	}
	if n.tail = append(n.tail, string(line)); len(n.tail) > kept {
		n.tail = n.tail[1:]
	}
	if !bytes.Contains(line, []byte("level=INFO")) {
		fmt.Fprintf(n.log, "%s\n", line)
	}
}

// processOf reads the name and the id of a process from what stands before its
// lines.
func processOf(source string) (function string, pid int, ok bool) {
	function, rest, found := strings.Cut(source, "[")
	number, found2 := strings.CutSuffix(rest, "]")
	pid, err := strconv.Atoi(number)
	return function, pid, found && found2 && err == nil
}

// lines hands on what is written to it line by line.
type lines struct {
	each func([]byte)

	mu   sync.Mutex
	rest []byte
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.each(line)
		l.rest = append(l.rest[:0], rest...)
	}
}
