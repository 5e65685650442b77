// Package metric counts and measures what a function does, and writes it as
// lines of CloudWatch's Embedded Metric Format, of which CloudWatch makes
// metrics. Invocations collect, and the first one to end in a minute writes one
// line: with the metrics of the function, and by choice one more for each
// organization. A failure is written when its invocation ends. What an instance
// has collected since its last line is lost when Lambda ends it.
//
// The format is at docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
// A line has at most 100 values of a metric; a recorder writes early when it
// has more. What is counted, and when, is left to its users.
package metric

import (
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Metric is one of the service's metrics, by its name in CloudWatch.
type Metric string

// The metrics. Counts are summed for each line; of a measurement, in
// milliseconds, each value is kept.
const (
	Requests           Metric = "Requests"
	ClientErrors       Metric = "ClientErrors" // requests answered 4xx, except 429
	RateLimited        Metric = "RateLimited"  // requests answered 429
	ServerErrors       Metric = "ServerErrors" // requests answered 5xx
	Latency            Metric = "Latency"      // measured: of a request
	IndexAge           Metric = "IndexAge"     // measured: from a record's change to its lists
	QueueAge           Metric = "QueueAge"     // measured: from the sending of a message to its invocation
	RecordsStored      Metric = "RecordsStored"
	RecordsRefused     Metric = "RecordsRefused"
	Delivered          Metric = "Delivered" // deliveries that became DELIVERED
	Retried            Metric = "Retried"   // failed attempts that will be repeated
	Failed             Metric = "Failed"    // deliveries that became FAILED
	Held               Metric = "Held"      // deliveries that became HELD
	CredentialsRefused Metric = "CredentialsRefused"
)

// urgent reports whether the metric counts failures that we are to look at.
func (m Metric) urgent() bool {
	return m == ServerErrors || m == RecordsRefused || m == Failed
}

// unit is the metric's in CloudWatch.
func (m Metric) unit() string {
	if m == Latency || m == IndexAge || m == QueueAge {
		return "Milliseconds"
	}
	return "Count"
}

// The dimensions.
const (
	dimensionFunction     = "FunctionName"
	dimensionOrganization = "OrganizationId"
	dimensionCode         = "Code"
)

// maxValues is how many values of a metric a line may have.
const maxValues = 100

// line names a line by its dimension and that dimension's value.
type line struct{ dimension, of string }

// Config says where metrics belong.
type Config struct {
	Namespace string
	Function  string // its name
	// ByOrganization writes metrics for each organization, too.
	ByOrganization bool
}

// Recorder collects the metrics of invocations. It is safe for concurrent use.
// A nil one collects nothing.
type Recorder struct {
	out io.Writer
	cfg Config

	mu        sync.Mutex
	collected map[line]map[Metric][]float64
	urgent    bool      // a failure is collected
	written   time.Time // the minute of the last line
}

// New returns a recorder that writes to out, such as a function's standard
// output.
func New(out io.Writer, cfg Config) *Recorder {
	return &Recorder{out: out, cfg: cfg, collected: map[line]map[Metric][]float64{}}
}

// Add counts n more. The organization is "" where none is known.
func (r *Recorder) Add(organization string, m Metric, n float64) {
	if r == nil || n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.linesOf(organization) {
		r.add(l, m, n)
	}
}

func (r *Recorder) add(l line, m Metric, n float64) {
	values := r.valuesOf(l)
	if len(values[m]) == 0 {
		values[m] = []float64{0}
	}
	values[m][0] += n
	r.urgent = r.urgent || m.urgent()
}

// Measure keeps a duration; a negative one is 0.
func (r *Recorder) Measure(organization string, m Metric, d time.Duration, now time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.linesOf(organization) {
		values := r.valuesOf(l)
		if values[m] = append(values[m], float64(max(0, d).Microseconds())/1000); len(values[m]) == maxValues {
			r.flush(now)
		}
	}
}

// Refuse counts a refused credential under the code of its answer, one of a
// few.
func (r *Recorder) Refuse(organization, code string) {
	if r == nil {
		return
	}
	r.Add(organization, CredentialsRefused, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(line{dimensionCode, code}, CredentialsRefused, 1)
}

// linesOf are the function's line and, if there is one, the organization's.
func (r *Recorder) linesOf(organization string) []line {
	lines := []line{{dimensionFunction, r.cfg.Function}}
	if organization != "" && r.cfg.ByOrganization {
		lines = append(lines, line{dimensionOrganization, organization})
	}
	return lines
}

func (r *Recorder) valuesOf(l line) map[Metric][]float64 {
	values := r.collected[l]
	if values == nil {
		values = map[Metric][]float64{}
		r.collected[l] = values
	}
	return values
}

// End ends an invocation. It writes what was collected since the last line, as of
// now, and begins anew, if that line is of an earlier minute or a failure is
// collected. A line that cannot be written is lost.
func (r *Recorder) End(now time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.collected) > 0 && (r.urgent || !now.Truncate(time.Minute).Equal(r.written)) {
		r.flush(now)
	}
}

func (r *Recorder) flush(now time.Time) {
	for l, values := range r.collected {
		_ = json.MarshalWrite(r.out, r.embedded(l, values, now), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
		_, _ = r.out.Write([]byte("\n"))
	}
	clear(r.collected)
	r.urgent, r.written = false, now.Truncate(time.Minute)
}

// embedded is a line in the format: the declaration of its metrics, its dimension,
// and the values.
func (r *Recorder) embedded(l line, values map[Metric][]float64, now time.Time) map[string]any {
	var declared []map[string]string
	members := map[string]any{l.dimension: l.of}
	for _, m := range slices.Sorted(maps.Keys(values)) {
		declared = append(declared, map[string]string{"Name": string(m), "Unit": m.unit()})
		members[string(m)] = values[m]
		if len(values[m]) == 1 {
			members[string(m)] = values[m][0]
		}
	}
	members["_aws"] = map[string]any{
		"Timestamp": now.UnixMilli(),
		"CloudWatchMetrics": []map[string]any{{
			"Namespace": r.cfg.Namespace, "Dimensions": [][]string{{l.dimension}}, "Metrics": declared,
		}},
	}
	return members
}
