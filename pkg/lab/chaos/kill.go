package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// victims are the functions that are killed. Those of the API are not: nobody calls them meanwhile but readers, who
// come again.
var victims = []string{"ingest", "dispatcher", "indexer", "worker", "sweeper"}

// killer kills processes of functions at random.
type killer struct {
	random *rand.Rand
	every  time.Duration // on average
	kills  []string      // the killed programs
}

func (k *killer) note(name string) { k.kills = append(k.kills, name) }

// run kills processes of the service until ctx ends. Each function is as likely as any other to be next.
func (k *killer) run(ctx context.Context, service *workload.Process) {
	for pause.For(ctx, k.every/2+time.Duration(k.random.Int64N(int64(k.every)))) == nil {
		functions := map[string]int{} // a process of each; a function's processes are alike
		for _, pid := range service.Children() {
			program, err := os.Readlink("/proc/" + pid + "/exe")
			if name := filepath.Base(program); err == nil && slices.Contains(victims, name) {
				functions[name], _ = strconv.Atoi(pid) // of digits, as the system writes it
			}
		}
		if len(functions) == 0 {
			continue
		}
		name := slices.Sorted(maps.Keys(functions))[k.random.IntN(len(functions))]
		if p, err := os.FindProcess(functions[name]); err == nil {
			_ = p.Kill() // it fails for a process that has ended meanwhile
		}
		k.note(name)
	}
}
