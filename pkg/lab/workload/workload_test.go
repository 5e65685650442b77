package workload

import (
	"bufio"
	"os/exec"
	"runtime"
	"testing"
	"time"
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
