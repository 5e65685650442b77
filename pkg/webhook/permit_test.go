package webhook_test

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/webhook"
)

func TestPermitsFollowThePaceOfAnEndpoint(t *testing.T) {
	for name, tt := range map[string]struct {
		had, attempts, slow, want int
	}{
		"nothing is known":          {had: 0, want: 5},
		"too few to say":            {had: 10, attempts: 9, slow: 9, want: 10},
		"quick":                     {had: 5, attempts: 10, want: 10},
		"one of twenty is slow":     {had: 5, attempts: 20, slow: 1, want: 10},
		"more than one of twenty":   {had: 20, attempts: 19, slow: 1, want: 10},
		"slow":                      {had: 10, attempts: 10, slow: 10, want: 5},
		"slow with the fewest":      {had: 5, attempts: 10, slow: 10, want: 5},
		"quick with nearly all":     {had: 15, attempts: 10, want: 20},
		"more than the most allows": {had: 40, attempts: 3, want: 20},
	} {
		t.Run(name, func(t *testing.T) {
			var pace webhook.Pace
			for i := range tt.attempts {
				took := time.Second
				if i < tt.slow {
					took++
				}
				pace.Add(took)
			}
			if got := pace.Permits(tt.had, 20); got != tt.want {
				t.Errorf("%d permits, want %d", got, tt.want)
			}
		})
	}
}
