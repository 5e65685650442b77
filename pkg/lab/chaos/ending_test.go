package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

func TestARunWaitsForEveryDueMarkOnce(t *testing.T) {
	const calm = 6 * time.Minute
	start, first, second := time.Unix(1_000_000, 0), value.NewID(), value.NewID()
	wait := patience{calm: calm, until: start.Add(calm), seen: map[value.ID]bool{}}
	for _, look := range []struct {
		name  string
		marks map[value.ID]time.Time
		want  time.Time
	}{
		{"no mark", nil, start.Add(calm)},
		{"a mark that has passed", map[value.ID]time.Time{first: start.Add(-time.Minute)}, start.Add(calm)},
		{"a mark ahead", map[value.ID]time.Time{second: start.Add(10 * time.Minute)}, start.Add(10*time.Minute + calm)},
		{"marks that move", map[value.ID]time.Time{first: start.Add(time.Hour), second: start.Add(time.Hour)}, start.Add(10*time.Minute + calm)},
	} {
		if wait.extend(look.marks); !wait.until.Equal(look.want) {
			t.Errorf("%s: waits until %s, want %s", look.name, wait.until, look.want)
		}
	}
}

func TestARunEndsWhenNothingLiesAhead(t *testing.T) {
	type look struct {
		pending, messages int
		complete          bool
	}
	quiet, waits, lacks, busy := look{complete: true}, look{messages: 3, complete: true}, look{}, look{pending: 1, messages: 1, complete: true}
	for name, tt := range map[string]struct {
		looks []look
		want  []step
	}{
		"two quiet looks":                   {[]look{quiet, quiet}, []step{lookAgain, finish}},
		"an attempt ahead between":          {[]look{quiet, busy, quiet, quiet}, []step{lookAgain, lookAgain, lookAgain, finish}},
		"messages that wait are brought":    {[]look{waits, waits, quiet, quiet}, []step{lookAgain, restart, lookAgain, finish}},
		"once only, then patience":          {slices.Repeat([]look{waits}, 12), append([]step{lookAgain, restart}, append(slices.Repeat([]step{lookAgain}, 9), finish)...)},
		"something missing, after patience": {slices.Repeat([]look{lacks}, 10), append(slices.Repeat([]step{lookAgain}, 9), finish)},
	} {
		t.Run(name, func(t *testing.T) {
			var state ending
			var got []step
			for _, l := range tt.looks {
				got = append(got, state.next(l.pending, l.messages, l.complete))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
