package workload

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/local/child"
)

// tick is the unit in which Linux counts a process's time.
const tick = 10 * time.Millisecond

// CPU is what the service has used of the processor so far, and what its table server has, the other child of this
// process. Both are 0 outside of Linux.
func (s *Service) CPU() (service, table time.Duration) {
	for _, pid := range child.Of(os.Getpid()) {
		if pid == s.PID() {
			service = processTime(pid)
		} else {
			table += processTime(pid)
		}
	}
	return service, table
}

// processTime is a process's time in user and in system mode; 0 if it has ended.
func processTime(pid int) time.Duration {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
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

// Logged is how many bytes the service has logged so far.
func (s *Service) Logged() int64 {
	info, err := s.log.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
