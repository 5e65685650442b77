package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killGroup kills a process and everything that it has started.
func killGroup(pid int) error { return ignoreGone(syscall.Kill(-pid, syscall.SIGKILL)) }

// interrupt asks a process to end.
func interrupt(pid int) error { return ignoreGone(syscall.Kill(pid, syscall.SIGINT)) }

func killProcess(pid int) error { return ignoreGone(syscall.Kill(pid, syscall.SIGKILL)) }

func ignoreGone(err error) error {
	if err == syscall.ESRCH { //nolint:errorlint // Kill returns the number itself
		return nil
	}
	return err
}

// prey is a process of a function.
type prey struct {
	function string
	pid      int
}

// functionsOf lists the processes of functions that a service has started.
func functionsOf(service int) ([]prey, error) {
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []prey
	for _, path := range statuses {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 || fields[1] != strconv.Itoa(service) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		program, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if err == nil && filepath.Base(filepath.Dir(program)) == "functions" {
			found = append(found, prey{filepath.Base(program), pid})
		}
	}
	return found, nil
}
