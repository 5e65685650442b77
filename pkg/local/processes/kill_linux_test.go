package processes

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestProcessesDieWithTheirParent runs a fleet in a process of its own, which is killed.
func TestProcessesDieWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "STAND_IN=parent")
	out := &written{}
	parent.Stdout = out
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the process of the function", func() bool { return strings.HasSuffix(out.String(), "\n") })
	var child int
	if _, err := fmt.Sscanf(out.String(), "child %d", &child); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("process %d does not run: %v", child, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	waitUntil(t, "the end of the process", func() bool { return gone(child) })
}

// gone reports whether a process is, or waits only for somebody to ask how it ended.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "State:\tZ")
}
