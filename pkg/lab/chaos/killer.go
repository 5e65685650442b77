package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/pause"
)

// killer kills processes of functions at random.
type killer struct {
	random *rand.Rand
	every  time.Duration // on average

	mu    sync.Mutex
	kills []kill
}

// victims are the functions that are killed. Those of the API are not: nobody
// calls them meanwhile.
func victims() []string { return []string{"ingest", "dispatcher", "indexer", "worker", "sweeper"} }

func (k *killer) all() []kill {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.kills)
}

func (k *killer) note(function string, pid int, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills = append(k.kills, kill{at, function, pid})
}

// run kills processes of the service until ctx ends. Each of them is as likely
// as any other to be next.
func (k *killer) run(ctx context.Context, service int) error {
	for pause.For(ctx, k.every/2+time.Duration(k.random.Int64N(int64(k.every)))) == nil {
		found, err := functionsOf(service)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(p prey) bool { return !slices.Contains(victims(), p.function) })
		if len(found) == 0 {
			continue
		}
		p := found[k.random.IntN(len(found))]
		at := time.Now()
		if err := killProcess(p.pid); err != nil {
			return fmt.Errorf("kill a %s: %w", p.function, err)
		}
		k.note(p.function, p.pid, at)
	}
	return nil
}
