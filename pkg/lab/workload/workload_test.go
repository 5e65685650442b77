package workload_test

import (
	"bufio"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lab/workload"
)

func TestPercentilesAreExact(t *testing.T) {
	var all workload.Latencies
	for i := 1; i <= 200; i++ {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	for p, want := range map[float64]int64{0: 1, 0.5: 1, 50: 100, 99: 198, 99.1: 199, 99.5: 199, 100: 200} {
		if got := all.Percentile(p).Milliseconds(); got != want {
			t.Errorf("percentile %v of 1 to 200 ms: got %d ms, want %d", p, got, want)
		}
	}
	if got := workload.Latencies(nil).Percentile(99); got != 0 {
		t.Errorf("percentile 99 of nothing: got %s, want 0", got)
	}
}

func TestTheProcessorTimeOfAProcessAndItsChildrenIsRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells it in /proc")
	}
	before := workload.OwnCPU()
	child := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read end")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	for began := time.Now(); workload.OwnCPU().Since(before).Own == 0 && time.Since(began) < 10*time.Second; { //nolint:revive // reading is work
	}
	if used := workload.OwnCPU().Since(before); used.Own <= 0 || used.Table <= 0 {
		t.Errorf("got %+v after some work of both, want more than nothing", used)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // its last read fails
}
