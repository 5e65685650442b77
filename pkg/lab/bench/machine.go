package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// thisMachine is what a figure depends on beside the code.
func thisMachine(now time.Time) string {
	return fmt.Sprintf("%s, %d cores, %s %s/%s, %s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		now.UTC().Format("2006-01-02 15:04 UTC"))
}

// processor is the model of the CPU, where the system tells it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	model, speed := "unknown CPU", ""
	for line := range strings.Lines(string(text)) {
		name, v, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(v)
		case "cpu MHz":
			speed = " at " + strings.TrimSpace(v) + " MHz"
		}
	}
	return model + speed
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 0.1:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.0f µs", ms*1000)
}

// loadAverage is how many processes wanted a processor in the last minute:
// what else runs on the machine shows in it, and so does the bench.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
