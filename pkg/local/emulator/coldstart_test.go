//go:build emulate

package emulator_test

import (
	"compress/flate"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkColdStart measures, for the least function and each of the service's, the time from its start to its first
// invocation (init-ms), the time of that invocation, its sample (first-ms), and the size of the function, plain and
// packed. The table is local: AWS adds a TLS handshake and the network.
func BenchmarkColdStart(b *testing.B) {
	const least = "hello-world"
	b.Run(least, func(b *testing.B) { coldStart(b, least, []byte("{}")) })
	samples, err := filepath.Glob(filepath.Join(root, "events", "*.json"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range samples {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		function, _, _ := strings.Cut(name, "-")
		b.Run(name, func(b *testing.B) { coldStart(b, function, sample(b, name)) })
	}
}

func coldStart(b *testing.B, name string, event []byte) {
	w := newHarness(b)
	var inits, firsts []float64
	for b.Loop() {
		f := w.start(b, name)
		f.invoke(b, event)
		f.stop() // what was measured is written after the answer
		inits = append(inits, f.reported(b, `INIT REPORT\(durationMs: ([0-9.]+)\)`))
		firsts = append(firsts, f.reported(b, `INVOKE RTDONE\(.*duration: ([0-9.]+)ms\)`))
	}
	size, packed := sizes(b, name)
	b.ReportMetric(0, "ns/op") // starting the emulator is nobody's concern
	b.ReportMetric(median(inits), "init-ms")
	b.ReportMetric(median(firsts), "first-ms")
	b.ReportMetric(size/1e6, "MB")
	b.ReportMetric(packed/1e6, "packed-MB")
}

// reported reads a figure from the emulator's log.
func (f *function) reported(b *testing.B, pattern string) float64 {
	b.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(f.output.String())
	if match == nil {
		b.Fatalf("the emulator of %s does not report %s:\n%s", f.name, pattern, f.output)
	}
	figure, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return figure
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// sizes returns the bytes of a function, plain and deflated as in a ZIP file.
func sizes(b *testing.B, name string) (plain, packed float64) {
	b.Helper()
	file, err := os.Open(functionBinary(b, name))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var out counter
	packer, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(packer, file)
	if err != nil {
		b.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		b.Fatal(err)
	}
	return float64(n), float64(out)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
