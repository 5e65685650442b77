package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	maxExamples = 5 // breaches of a promise that a report shows
	maxMessages = 8 // messages of the log that a report shows, the most frequent
)

// report is what a run came to.
type report struct {
	title   string
	runs    []string // what each run of the service was like
	calmAt  time.Time
	took    time.Duration // until every delivery had ended
	checks  []check
	figures [][2]string
}

// count adds how much happened, without which the checks say little.
func (r *report) count(e *evidence, messages map[string]int) {
	kills, answers, early := map[string]int{}, map[string]int{}, 0
	for _, k := range e.kills {
		kills[cmp.Or(k.function, "the whole")]++
	}
	for i := range e.requests {
		q := &e.requests[i]
		switch {
		case q.status == 0:
			answers["cut off or given up"]++
		case q.accepted():
			answers["accepted"]++
		default:
			answers["refused"]++
		}
		if q.arrived.Before(r.calmAt) {
			early++
		}
	}
	recorded := 0 // attempts that came to their receivers
	for _, d := range e.deliveries {
		for _, a := range d.Attempts {
			if a.ResponseStatus != nil || a.Error != nil && !strings.Contains(*a.Error, "refused") {
				recorded++
			}
		}
	}
	r.add("kills", "%d (%s)", len(e.kills), countsText(kills))
	r.add("requests", "%d (%s), %d of them before the calm", len(e.requests), countsText(answers), early)
	r.add("outcomes lost", "%d requests whose outcome is in no delivery", len(e.requests)-recorded)
	r.add("messages", "%d held back, %d sent once more", e.held, len(e.copies))
	r.add("errors logged", "%d", len(e.complaints))
	often := slices.SortedFunc(maps.Keys(messages), func(a, b string) int {
		return cmp.Or(cmp.Compare(messages[b], messages[a]), cmp.Compare(a, b))
	})
	for _, text := range often[:min(len(often), maxMessages)] {
		r.add("", "%d × %s", messages[text], text)
	}
}

func (r *report) add(name, format string, args ...any) {
	r.figures = append(r.figures, [2]string{name, fmt.Sprintf(format, args...)})
}

func countsText(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

// write writes the report and returns how many promises are broken.
func (r *report) write(out io.Writer) (broken int) {
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
		c, result := &r.checks[i], "holds"
		if !c.holds() {
			result = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, "  %-7s %s\n          %s\n", result, c.promise, c.found)
		for _, text := range c.broken[:min(len(c.broken), maxExamples)] {
			fmt.Fprintf(out, "          - %s\n", text)
		}
		if more := len(c.broken) - maxExamples; more > 0 {
			fmt.Fprintf(out, "          and %d more\n", more)
		}
	}
	return broken
}
