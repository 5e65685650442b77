package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux tells a process's time.
const tick = 10 * time.Millisecond

// processorTime is what a process has used of the processor, and what the
// table server, its child, has. It is 0 where the system does not tell.
type processorTime struct{ own, table time.Duration }

func (p processorTime) since(before processorTime) processorTime {
	return processorTime{p.own - before.own, p.table - before.table}
}

// per tells the use of one of n requests.
func (p processorTime) per(n int) string {
	if p.own == 0 || n == 0 {
		return "?"
	}
	return fmt.Sprintf("%d + %d µs", p.own.Microseconds()/int64(n), p.table.Microseconds()/int64(n))
}

// processorNow reads the times so far.
func processorNow() processorTime {
	return processorTime{own: ownProcessor(), table: childrenTime("self")}
}

// childrenTime is the time of the processes that a process has started and
// that run.
func childrenTime(process string) (sum time.Duration) {
	// A child belongs to the thread that started it.
	tasks, _ := os.ReadDir("/proc/" + process + "/task") // absent where there is no such folder
	var children []byte
	for _, task := range tasks {
		more, _ := os.ReadFile("/proc/" + process + "/task/" + task.Name() + "/children") // absent when the thread has ended
		children = append(children, more...)
	}
	for _, child := range strings.Fields(string(children)) {
		sum += processTime(child)
	}
	return sum
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
