package workload

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

func TestPercentilesAreExact(t *testing.T) {
	var all Latencies
	for i := 1; i <= 200; i++ {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	for p, want := range map[float64]int64{0: 1, 0.5: 1, 50: 100, 99: 198, 99.1: 199, 99.5: 199, 100: 200} {
		if got := all.Percentile(p).Milliseconds(); got != want {
			t.Errorf("percentile %v of 1 to 200 ms: got %d ms, want %d", p, got, want)
		}
	}
	if got := Latencies(nil).Percentile(99); got != 0 {
		t.Errorf("percentile 99 of nothing: got %s, want 0", got)
	}
}

// worked starts a child that has worked, and waits for its end.
func worked(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read end")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its last read fails
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return cmd
}

func TestTheProcessorTimesOfServiceAndTableAreTold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells it in /proc")
	}
	s := Service{cmd: worked(t)}
	if service, table := s.CPU(); service <= 0 || table != 0 {
		t.Errorf("a service that worked, alone: got %s and %s, want some and none", service, table)
	}
	worked(t)
	if service, table := s.CPU(); service <= 0 || table <= 0 {
		t.Errorf("with a table that worked: got %s and %s, want some of both", service, table)
	}
}

func TestAReceiverTellsWhatItAnsweredAndWhenARecordsFirstEventCame(t *testing.T) {
	r, err := newReceiver(t.Context(), func(path string) (int, time.Duration) {
		status, _ := strconv.Atoi(path[1:])
		return status, 0
	})
	if err != nil {
		t.Fatal(err)
	}
	record := value.NewID()
	var want []Receipt
	var times []time.Time
	for _, status := range []int{204, 500, 0} {
		receipt := Receipt{Path: fmt.Sprint("/", status), Event: value.NewID(), Status: status}
		want = append(want, receipt)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+receipt.Path, strings.NewReader(`{"data":{"object":{"id":"`+record.String()+`"}}}`))
		req.Header.Set("webhook-id", receipt.Event.String())
		answer, err := http.DefaultClient.Do(req)
		if (err != nil) != (status == 0) || err == nil && answer.StatusCode != status {
			t.Errorf("a behaviour of %d: got %v, %v", status, answer, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		times = append(times, time.Now())
	}
	if err := r.server.Shutdown(t.Context()); err != nil { // it waits for what handlers note after their answers
		t.Fatal(err)
	}
	got := r.Receipts()
	for n := range got {
		if want[n].At = got[n].At; got[n].At.After(times[n]) {
			t.Errorf("receipt %d came at %s, want before %s", n, got[n].At, times[n])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("receipts %+v, want %+v", got, want)
	}
	if arrived, err := r.await(t.Context(), []value.ID{record}); err != nil || arrived[0].After(times[0]) {
		t.Errorf("the record's event came at %v, %v; want before %s", arrived, err, times[0])
	}
}
