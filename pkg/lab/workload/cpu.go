package workload

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux tells a process's time.
const tick = 10 * time.Millisecond

// CPU is the processor time that a process has used and that its children, the
// table server among them, have. It is 0 where the system does not tell.
type CPU struct{ Own, Table time.Duration }

// CPU is what the service has used so far.
func (p *Process) CPU() CPU { return cpuOf(strconv.Itoa(p.PID())) }

// OwnCPU is what this process has used so far.
func OwnCPU() CPU { return cpuOf("self") }

// Since is what was used after an earlier reading.
func (c CPU) Since(before CPU) CPU { return CPU{c.Own - before.Own, c.Table - before.Table} }

// PerEvent is a time divided by so many events, for a report.
func PerEvent(d time.Duration, events int) string {
	if d == 0 || events == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1000/float64(events))
}

func cpuOf(process string) CPU {
	used := CPU{Own: processTime(process)}
	// A child belongs to the thread that started it.
	tasks, _ := os.ReadDir("/proc/" + process + "/task") // absent outside of Linux
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/" + process + "/task/" + task.Name() + "/children") // absent when the thread has ended
		for child := range strings.FieldsSeq(string(children)) {
			used.Table += processTime(child)
		}
	}
	return used
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
