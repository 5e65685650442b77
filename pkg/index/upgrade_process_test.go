package index_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// releaseProcess is the index's programs of a release in a process of their own.
type releaseProcess struct {
	in  io.Writer
	out *bufio.Reader
	log *bytes.Buffer
}

// startRelease builds the release with the tags, and starts it over the table.
func startRelease(t *testing.T, tags string, args ...string) *releaseProcess {
	t.Helper()
	program := filepath.Join(t.TempDir(), "release")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", program, "./testdata/release")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with %q: %v\n%s", tags, err, said)
	}
	p, cmd := &releaseProcess{log: &bytes.Buffer{}}, exec.Command(program, args...) //nolint:gosec,noctx // our own program; it ends with its input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out, cmd.Stderr = in, bufio.NewReader(out), p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, p.out)
		if err := cmd.Wait(); err != nil || strings.Contains(p.log.String(), "rebuilt") || strings.Contains(p.log.String(), "newer") {
			t.Errorf("the release with %q: %v\n%s", tags, err, p.log)
		}
	})
	return p
}

// do has the release do what the words say. An error is a refusal, 503 over HTTP.
func (p *releaseProcess) do(t *testing.T, words ...any) string {
	t.Helper()
	_, _ = fmt.Fprintln(p.in, words...)
	answer, err := p.out.ReadString('\n')
	if answer = strings.TrimSpace(answer); err != nil || strings.HasPrefix(answer, "error") {
		t.Errorf("%v: %v %s", words[0], err, answer)
	}
	return answer
}

// products are the products of the test's table, by the revision that they have.
type products struct {
	table *dynamo.Table
	org   value.ID
	mu    sync.Mutex
	now   map[value.ID]value.Time
}

// change puts some products again, or new ones, and returns their ids.
func (p *products) change(t *testing.T, random *rand.Rand) (ids []any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.SortedFunc(maps.Keys(p.now), func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) })
	for range 1 + random.IntN(6) {
		id, previous := value.NewID(), (*commerce.Stored)(nil)
		if len(known) > 40 {
			var err error
			id = known[random.IntN(len(known))]
			if previous, err = p.table.Record(t.Context(), p.org, commerce.KindProduct, id); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Contains(ids, any(id)) {
			continue
		}
		next := commerce.Stored{
			Kind: commerce.KindProduct, ID: id, OrganizationID: p.org, Revision: max(value.TimeOf(time.Now()), p.now[id]+1),
			Doc: fmt.Appendf(nil, `{"id":%q,"name":"thing %d","sku":"s","status":"ACTIVE"}`, id, random.IntN(1000)),
		}
		if err := p.table.PutRecord(t.Context(), previous, &next); err != nil {
			t.Fatal(err)
		}
		p.now[id] = next.Revision
		ids = append(ids, id)
	}
	return ids
}

// list is what a list of all products is.
func (p *products) list() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hits := []string{fmt.Sprint(len(p.now))}
	for _, id := range slices.SortedFunc(maps.Keys(p.now), func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) }) {
		hits = append(hits, fmt.Sprint(id, "@", int64(p.now[id])))
	}
	return strings.Join(hits, " ")
}

// TestTwoReleasesInProcessesOfTheirOwnServeOneTable deploys a release over
// another one, of the format before: upgrade, canary, rollback. Both answer every
// query, rightly, and neither rebuilds anything.
func TestTwoReleasesInProcessesOfTheirOwnServeOneTable(t *testing.T) {
	t.Parallel()
	client, name := dynamotest.Client(t)
	p := &products{table: dynamo.New(client, name, time.Now), org: value.NewID(), now: map[value.ID]value.Time{}}
	releases := make([]*releaseProcess, 2)
	for i, tags := range []string{"", "indexnext"} {
		releases[i] = startRelease(t, tags, *client.Options().BaseEndpoint, name, p.org.String())
	}
	if old, next := releases[0].do(t, "layout"), releases[1].do(t, "layout"); old == next {
		t.Fatalf("both have the layout %s", old)
	}
	random, ahead := rand.New(rand.NewPCG(11, 12)), time.Duration(0)
	for _, phase := range deploy {
		for range 6 {
			ahead += 2 * time.Minute // chunks may be overwritten after one
			for _, r := range releases {
				r.do(t, "ahead", ahead)
			}
			var both sync.WaitGroup
			for _, i := range phase.live {
				ids, more := p.change(t, random), p.change(t, random)
				both.Go(func() {
					releases[i].do(t, append([]any{"index"}, ids...)...)
					releases[i].do(t, "work")
					releases[i].do(t, "ask")
					releases[i].do(t, append([]any{"index"}, more...)...)
				})
			}
			both.Wait()
			for _, i := range phase.live {
				if got, want := releases[i].do(t, "list"), p.list(); got != want {
					t.Fatalf("%s: release %d lists %s,\nwant %s", phase.name, i, got, want)
				}
			}
		}
	}
	list := index.NewLists(p.table, dynamo.Shards).Records[commerce.KindProduct]
	x := index.Index{Key: index.Key{Org: p.org, List: list}, Reader: p.table}
	if differences, err := ops.Verify(t.Context(), p.table, p.org, list, time.Now()); err != nil || len(differences) > 0 {
		t.Errorf("verify: %v, %v; want no difference", differences, err)
	}
	all, err := x.Manifests(t.Context())
	rebuilds, _ := x.Rebuilds(t.Context())
	if err != nil || len(all) != 2 || len(rebuilds) != 0 {
		t.Errorf("manifests %v, rebuilds %v, %v; want one manifest of each release", slices.Sorted(maps.Keys(all)), rebuilds, err)
	}
}
