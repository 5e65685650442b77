//go:build emulate && linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/local/processes"
)

// startProcesses runs a service whose functions are processes.
func startProcesses(t *testing.T, flags ...string) *ownService {
	t.Helper()
	s := newOwnService(t)
	shareFunctions(t, s.data)
	s.start(t, append([]string{"--processes"}, flags...)...)
	return s
}

// shareFunctions lets every data folder use the binaries of make build. A run
// finds them built, and starts in the time that it has.
func shareFunctions(t *testing.T, data string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, ".build", runtime.GOARCH, "functions")
	names := slices.Collect(maps.Keys(app.Functions(nil, nil)))
	if _, err := processes.Build(t.Context(), root, folder, names); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(data, 0o755), os.Symlink(folder, filepath.Join(data, "functions"))); err != nil {
		t.Fatal(err)
	}
}

// functions lists the processes of functions by name.
func (s *ownService) functions(t *testing.T) map[string][]int {
	t.Helper()
	found := map[string][]int{}
	for _, pid := range childrenOf(t, s.cmd.Process.Pid) {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && filepath.Base(filepath.Dir(program)) == "functions" {
			found[filepath.Base(program)] = append(found[filepath.Base(program)], pid)
		}
	}
	return found
}

// killOne kills a process of one of the functions, if there is any, and
// returns the function's name.
func (s *ownService) killOne(t *testing.T, random *rand.Rand, functions ...string) string {
	t.Helper()
	all := s.functions(t)
	functions = slices.DeleteFunc(slices.Clone(functions), func(name string) bool { return len(all[name]) == 0 })
	if len(functions) == 0 {
		return ""
	}
	name := functions[random.IntN(len(functions))]
	pid := all[name][random.IntN(len(all[name]))]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
	return name
}

// hurry has what a killed process had received come again after seconds
// instead of minutes.
func (s *ownService) hurry(t *testing.T) {
	t.Helper()
	for _, url := range []string{s.RecordsQueueURL, s.ImportsQueueURL, s.DeliveriesQueueURL, s.SlowDeliveriesQueueURL, s.IndexJobsQueueURL} {
		if _, err := s.sqs(t).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: &url, Attributes: map[string]string{"VisibilityTimeout": "10"},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcessesServeAndDeliverThoughTheyAreKilled(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples(t, "shopify"), "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	s := startProcesses(t)
	s.hurry(t)
	o := s.newOrganization(t)
	r := o.subscribe(t, "order.*")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed := map[string]int{}
	kill := func() {
		if name := s.killOne(t, random, "ingest", "dispatcher", "indexer", "worker", "sweeper"); name != "" {
			killed[name]++
		}
	}

	o.commerce(t, append([]string{"import", "--url", o.BaseURL, "--token", o.JWT}, files...)...)
	for range 12 {
		kill()
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	}
	for path, want := range map[string]int{"/api/categories": 5, "/api/products": 66} {
		await(t, path, func() bool { return o.total(t, path) == want })
	}
	ids := map[string]bool{}
	for range 20 {
		id := value.NewID()
		ids[id.String()] = true
		o.send(t, o.order(id, "CONFIRMED"))
		if random.IntN(2) == 0 {
			kill()
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
	}
	await(t, "two events of each order at the receiver", func() bool {
		events := map[string]bool{}
		for _, e := range r.Events() {
			events[e.ID] = true
		}
		return len(events) == 2*len(ids)
	})
	for _, e := range r.Events() {
		if e.Signature != listener.Verified || !ids[e.ObjectID] {
			t.Errorf("received %s of %s: signature %v; want a verified event of an order that was sent", e.Type, e.ObjectID, e.Signature)
		}
	}
	await(t, "the orders in the list", func() bool { return o.total(t, "/api/orders") == len(ids) })
	if got := o.commerce(t, "verify", "--organization", o.OrganizationID); !strings.HasPrefix(got, "no differences in ") {
		t.Errorf("lists and table: got %q, want no differences", got)
	}
	t.Logf("killed %v, %d events received for %d", killed, len(r.Events()), 2*len(ids))
	for name, pids := range s.functions(t) {
		if len(pids) > 16 {
			t.Errorf("%s: %d processes side by side", name, len(pids))
		}
	}
	s.stop(t)
}

func TestProcessesOfTheAPIAreStartedAgainAndEndWithTheService(t *testing.T) {
	s := startProcesses(t)
	o := s.newOrganization(t)
	for range 5 {
		for _, pids := range s.functions(t) {
			for _, pid := range pids {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		await(t, "the end of all functions", func() bool { return len(s.functions(t)) == 0 })
		// One that is killed in this moment may still get a request.
		await(t, "an answer after every process was killed", func() bool {
			resp, _ := o.user(t, http.MethodGet, "/api/me", "")
			return resp.StatusCode == http.StatusOK
		})
	}

	// And with the service, however it ends.
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.exit(t)
}
