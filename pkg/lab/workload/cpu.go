package workload

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux counts a process's time.
const tick = 10 * time.Millisecond

// CPU is the processor time of a process, and of its children: the table server's. It is 0 outside of Linux.
type CPU struct{ Own, Table time.Duration }

// CPU is what the service has used so far.
func (p *Process) CPU() CPU { return cpuOf(strconv.Itoa(p.PID())) }

// OwnCPU is what this process has used so far.
func OwnCPU() CPU { return cpuOf("self") }

// Since is the use after an earlier reading.
func (c CPU) Since(before CPU) CPU { return CPU{c.Own - before.Own, c.Table - before.Table} }

func cpuOf(process string) CPU {
	used := CPU{Own: processTime(process)}
	for _, child := range childrenOf(process) {
		used.Table += processTime(child)
	}
	return used
}

// Children are the ids of the processes that the service has started. It finds them on Linux only.
func (p *Process) Children() []string { return childrenOf(strconv.Itoa(p.PID())) }

func childrenOf(process string) (pids []string) {
	// A child belongs to the thread that started it. The files of an ended thread are absent.
	threads, _ := filepath.Glob("/proc/" + process + "/task/*/children")
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

// processTime is a process's time in user and in system mode.
func processTime(process string) time.Duration {
	text, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return 0
	}
	// The second field, the name in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick
}
