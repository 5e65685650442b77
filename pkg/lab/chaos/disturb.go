package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/local/child"
)

// rates are those at which a share of all requests to the table fails in one way or another, and as many batches are
// done by halves.
var rates = faults.Rates{
	faults.Throttle: 0.35 * faultRate, faults.InternalError: 0.1 * faultRate, faults.LostRequest: 0.1 * faultRate, faults.Timeout: 0.02 * faultRate,
	faults.Conflict: 0.2 * faultRate, faults.FalseError: 0.1 * faultRate, faults.LostAnswer: 0.13 * faultRate, faults.Unprocessed: faultRate,
}

// away fails every request: connections break, hang, or bring errors.
var away = faults.Rates{faults.LostRequest: 0.3, faults.Timeout: 0.02, faults.Throttle: 0.5, faults.InternalError: 1}

// outage takes the table away in the middle of the chaos.
func (r *run) outage(ctx context.Context) {
	length := r.Chaos / outagePart
	if pause.For(ctx, (r.Chaos-length)/2) != nil {
		return
	}
	r.say("the table goes away")
	r.service.Faults.SetRates(away)
	_ = pause.For(ctx, length) // it ends with the chaos too
	r.service.Faults.SetRates(rates)
}

// killAll kills processes of functions until chaos ends, and meanwhile so many times the whole service.
func (r *run) killAll(ctx, chaos context.Context) error {
	random := r.random(3)
	for range restarts {
		part, cancel := context.WithTimeout(chaos, r.Chaos/(restarts+1))
		r.killFunctions(part, random)
		cancel()
		r.kills["the whole"]++
		if err := r.restart(ctx, nil); err != nil {
			return err
		}
	}
	r.killFunctions(chaos, random)
	return nil
}

// victims are the functions that are killed. Those of the API are not: nobody calls them meanwhile but readers, who
// come again.
var victims = []string{"ingest", "dispatcher", "indexer", "worker", "sweeper"}

// killFunctions kills a process each 200 ms on average. Each function is as likely as any other to be next.
func (r *run) killFunctions(ctx context.Context, random *rand.Rand) {
	const least, span = 100 * time.Millisecond, 200 * time.Millisecond
	for pause.For(ctx, least+time.Duration(random.Int64N(int64(span)))) == nil {
		next := victims[random.IntN(len(victims))]
		for _, pid := range child.Of(r.service.PID()) {
			program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // absent once it has ended
			if filepath.Base(program) == next && syscall.Kill(pid, syscall.SIGKILL) == nil {
				r.kills[next]++
				break
			}
		}
	}
}

// apart takes the place of pkg/app/clock.go, so that the clocks of processes differ by up to 10 s. The authorizer's does
// not: it compares tokens' times with their issuer's clock.
const apart = `package app

import (
	"math/rand/v2"
	"os"
	"time"
)

var offset = rand.N(10*time.Second) - 5*time.Second

func clock() time.Time {
	if os.Getenv("AWS_LAMBDA_FUNCTION_NAME") == "authorizer" {
		return time.Now()
	}
	return time.Now().Add(offset)
}
`

// setClocksApart has the service build its functions with clocks that differ.
func (r *run) setClocksApart() error {
	original, clock, list := filepath.Join(r.service.Root, "pkg", "app", "clock.go"), filepath.Join(r.service.Dir, "clock.go"), filepath.Join(r.service.Dir, "overlay.json")
	for path, text := range map[string]string{clock: apart, list: fmt.Sprintf(`{"Replace": {%q: %q}}`, original, clock)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the functions' clock: %w", err)
		}
	}
	r.service.Env = append(r.service.Env, "GOFLAGS=-overlay="+list)
	return nil
}
