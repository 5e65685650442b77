package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/webhook"
)

// mostExamples bounds the breaches of a promise that a report shows.
const mostExamples = 5

// report is what a run came to.
type report struct {
	title   string
	runs    []string // what each run of the service was like
	calmAt  time.Time
	took    time.Duration // until everything had come to its end
	checks  []check
	figures [][2]string
}

// count adds what happened, beside which the checks are to be read.
func (r *report) count(e *evidence, messages map[string]int) {
	r.add("kills", "%d (%s)", len(e.kills), countsText(e.killed()))
	statuses, early := e.answers(r.calmAt)
	r.add("requests", "%d (%s), %d of them before the calm", len(e.requests), countsText(statuses), early)
	r.add("outcomes lost", "%d requests whose outcome is in no delivery", len(e.requests)-e.recorded())
	r.add("messages", "%d held back, %d sent once more", e.held, len(e.copies))
	r.add("errors logged", "%d", len(e.complaints))
	const most = 8
	often := slices.SortedFunc(maps.Keys(messages), func(a, b string) int {
		return cmp.Or(cmp.Compare(messages[b], messages[a]), cmp.Compare(a, b))
	})
	for _, text := range often[:min(len(often), most)] {
		r.add("", "%d × %s", messages[text], text)
	}
}

func (r *report) add(name, format string, args ...any) {
	r.figures = append(r.figures, [2]string{name, fmt.Sprintf(format, args...)})
}

// killed counts the kills by function.
func (e *evidence) killed() map[string]int {
	by := map[string]int{}
	for _, k := range e.kills {
		by[cmp.Or(k.function, "the whole")]++
	}
	return by
}

// answers counts the requests by what became of them, and those before a time.
func (e *evidence) answers(before time.Time) (by map[string]int, early int) {
	by = map[string]int{}
	for i := range e.requests {
		q := &e.requests[i]
		switch {
		case q.status == 0:
			by["cut off or given up"]++
		case q.accepted():
			by["accepted"]++
		default:
			by["refused"]++
		}
		if q.arrived.Before(before) {
			early++
		}
	}
	return by, early
}

// recorded counts the attempts that the deliveries know of and that came to their
// receivers.
func (e *evidence) recorded() (n int) {
	for _, delivery := range e.deliveries {
		for _, a := range delivery.Attempts {
			if a.ResponseStatus != nil || reached(a) {
				n++
			}
		}
	}
	return n
}

// reached tells whether an attempt without an answer came to its receiver.
func reached(a webhook.Attempt) bool {
	return a.Error != nil && !strings.Contains(*a.Error, "refused")
}

func countsText(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

func (r *report) failed() (n int) {
	for i := range r.checks {
		if !r.checks[i].holds() {
			n++
		}
	}
	return n
}

func (r *report) write(out io.Writer) {
	fmt.Fprintf(out, "\n%s, %s\n\n", r.title, r.took.Round(time.Second))
	for i, text := range r.runs {
		fmt.Fprintf(out, "  run %d           %s\n", i+1, text)
	}
	for _, f := range r.figures {
		fmt.Fprintf(out, "  %-15s %s\n", f[0], f[1])
	}
	if len(r.figures) > 0 {
		fmt.Fprintln(out)
	}
	for i := range r.checks {
		c := &r.checks[i]
		verdict := "holds"
		if !c.holds() {
			verdict = "BROKEN"
		}
		fmt.Fprintf(out, "  %-7s %s\n          %s\n", verdict, c.promise, c.found)
		for _, text := range c.broken[:min(len(c.broken), mostExamples)] {
			fmt.Fprintf(out, "          - %s\n", text)
		}
		if more := len(c.broken) - mostExamples; more > 0 {
			fmt.Fprintf(out, "          and %d more\n", more)
		}
	}
}
