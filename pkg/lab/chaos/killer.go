package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// kill is the end of a process, or of the whole service when function is "".
type kill struct {
	at       time.Time
	function string
	pid      int
}

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
		functions, err := functionsOf(service)
		if err != nil {
			return err
		}
		functions = slices.DeleteFunc(functions, func(f kill) bool { return !slices.Contains(victims(), f.function) })
		if len(functions) == 0 {
			continue
		}
		f := functions[k.random.IntN(len(functions))]
		if p, err := os.FindProcess(f.pid); err == nil {
			_ = p.Kill() // it fails for a process that has ended meanwhile
		}
		k.note(f.function, f.pid, time.Now())
	}
	return nil
}

// functionsOf lists the processes of functions that a service has started. It
// finds them on Linux only.
func functionsOf(service int) ([]kill, error) {
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || statuses == nil {
		return nil, fmt.Errorf("list processes, which needs Linux: %w", err)
	}
	var found []kill
	for _, path := range statuses {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(service) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		program, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if err == nil && filepath.Base(filepath.Dir(program)) == "functions" {
			found = append(found, kill{function: filepath.Base(program), pid: pid})
		}
	}
	return found, nil
}
