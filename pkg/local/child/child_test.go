package child_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/local/child"
)

// TestMain lets the test binary stand in for a parent that is killed, and for a child that only waits.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST") {
	case "parent":
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		cmd := waiting()
		child.Apart(cmd)
		if _, err := child.Start(cmd); err != nil {
			panic(err)
		}
		fmt.Println(cmd.Process.Pid)
		for range interrupts {
			fmt.Println("interrupted")
		}
	case "child":
		<-time.After(time.Hour)
	}
	os.Exit(m.Run())
}

// waiting is a process that waits for its end.
func waiting() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHILD_TEST=child")
	return cmd
}

func TestDetachedChildDiesOnlyWithAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux does this")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "CHILD_TEST=parent")
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell starts what runs in the foreground
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	said.Scan()
	pid, err := strconv.Atoi(said.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-parent.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if said.Scan(); said.Text() != "interrupted" || !runs(pid) {
		t.Fatalf("after an interrupt of the terminal the parent said %q, and the child runs: %t; want interrupted and true", said.Text(), runs(pid))
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	waitUntil(t, "the end of the child", func() bool { return !runs(pid) })
}

func TestStartSaysHowTheProcessEnded(t *testing.T) {
	for range 100 { // on whichever thread it begins, the main one included
		cmd := waiting()
		ended, err := child.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if <-ended; cmd.ProcessState.String() != "signal: killed" {
			t.Fatalf("the child ended by %v, want by a kill", cmd.ProcessState)
		}
	}
	if _, err := child.Start(exec.Command("/nowhere")); err == nil {
		t.Error("a program that does not exist was started")
	}
}

func TestAChildBeginsWithTheSignalsBlocked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux does this")
	}
	cmd := exec.Command("sh", "-c", "kill -INT $$; echo still here")
	var said strings.Builder
	cmd.Stdout = &said
	ended, err := child.Start(cmd, child.Block(syscall.SIGINT))
	if err != nil {
		t.Fatal(err)
	}
	if <-ended; !cmd.ProcessState.Success() || said.String() != "still here\n" {
		t.Errorf("after an interrupt the child said %q and ended with %v, want it to go on", said.String(), cmd.ProcessState)
	}
}

func TestAChildDoesNotWaitForTheDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux does this")
	}
	for name, of := range map[string]struct {
		prepare []func() error
		want    string
	}{
		"skipped":     {[]func() error{child.SkipSync}, "file data"},
		"not skipped": {nil, ""},
	} {
		// A pipe cannot be synced: the kernel refuses, if it is asked.
		cmd := exec.Command("sh", "-c", "sync /dev/stdout && printf file; sync -d /dev/stdout && printf ' data'; true")
		var said strings.Builder
		cmd.Stdout = &said
		ended, err := child.Start(cmd, of.prepare...)
		if err != nil {
			t.Fatal(err)
		}
		if <-ended; !cmd.ProcessState.Success() || said.String() != of.want {
			t.Errorf("%s: the child synced %q and ended with %v, want %q", name, said.String(), cmd.ProcessState, of.want)
		}
	}
}

// runs reports whether a process does; one that only waits to be reaped does not.
func runs(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
