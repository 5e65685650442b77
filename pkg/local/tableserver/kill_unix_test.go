//go:build unix

package tableserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary stand in for a runner that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TABLESERVER_RUNNER_DIR"); dir != "" {
		server, err := Start(context.Background(), Program{Dynoxide, os.Getenv("TABLESERVER_BINARY")}, dir)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		group, err := syscall.Getpgid(server.child.process.Pid)
		fmt.Println(server.child.process.Pid, group, syscall.Getpgrp(), err)
		select {}
	}
	os.Exit(m.Run())
}

func TestTheServerDiesWithAKilledRunnerAndTheNextOneStarts(t *testing.T) {
	dir := t.TempDir()
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), "TABLESERVER_RUNNER_DIR="+dir, "TABLESERVER_BINARY="+pinned(t).path)
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the runner's first line: %v", err)
	}
	said := strings.Fields(line)
	if len(said) != 4 || said[1] != said[2] {
		t.Fatalf("the runner said %q, want pid and twice the same process group", line)
	}
	pid, err := strconv.Atoi(said[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), pinned(t), dir); !errors.Is(err, ErrInUse) {
		t.Errorf("Start in a directory in use: got %v, want %v", err, ErrInUse)
	}
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := runner.Wait(); err == nil {
		t.Error("the killed runner ended well")
	}
	waitUntil(t, "the end of the runner's server", func() bool { return !alive(pid) })
	start(t, dir)
}

// alive says whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestAnInterruptOfTheTerminalLeavesTheServerToItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can block a signal in a child")
	}
	server := start(t, t.TempDir())
	createTable(t, client(server))
	for range 3 {
		if err := server.child.process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), client(server), "a", nil); err != nil {
			t.Fatalf("put after an interrupt: %v", err)
		}
	}
	if err := server.Err(); err != nil {
		t.Errorf("Err after an interrupt: %v", err)
	}
}
