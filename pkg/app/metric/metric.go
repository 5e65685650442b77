// Package metric counts and measures what a function does, and writes it as
// lines of CloudWatch's Embedded Metric Format, of which CloudWatch makes
// metrics. An invocation collects, and its end writes one line: with the
// metrics of the function, and by choice one more for each organization.
//
// The format is at docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
// A line has at most 100 values of a metric; a recorder writes early when it
// has more. What is counted, and when, is left to its users.
package metric

import (
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Metric is one of the service's metrics.
type Metric uint8

// The metrics. Counts are summed for each line; of a measurement, in
// milliseconds, each value is kept.
const (
	Requests      Metric = iota
	ClientErrors         // requests answered 4xx, but for 429
	RateLimited          // requests answered 429
	ServerErrors         // requests answered 5xx
	Latency              // measured: of a request
	ReadUnits            // of the table, as it tells them
	WriteUnits           // likewise; without writes whose condition failed
	ViewHits             // queries of lists that read no segment
	ViewLoads            // queries of lists that read segments
	ChunksRead           // by queries of lists
	ChunkBytes           // likewise
	IndexAge             // measured: from a record's change to its lists
	QueueAge             // measured: from the sending of a message to its invocation
	RecordsStored        // creations, updates and deletions
	RecordsRefused
	WriteConflicts // writes of a record that another writer changed meanwhile
	Delivered      // deliveries that became DELIVERED
	Retried        // failed attempts that will be repeated
	Failed         // deliveries that became FAILED
	Held           // deliveries that became HELD
	CredentialsRefused
	metrics
)

// definition is how a metric appears in CloudWatch.
type definition struct{ name, unit string }

func definitions() *[metrics]definition {
	return &[metrics]definition{
		Requests: {"Requests", "Count"}, ClientErrors: {"ClientErrors", "Count"}, RateLimited: {"RateLimited", "Count"},
		ServerErrors: {"ServerErrors", "Count"}, Latency: {"Latency", "Milliseconds"},
		ReadUnits: {"ReadUnits", "Count"}, WriteUnits: {"WriteUnits", "Count"},
		ViewHits: {"ViewHits", "Count"}, ViewLoads: {"ViewLoads", "Count"},
		ChunksRead: {"ChunksRead", "Count"}, ChunkBytes: {"ChunkBytes", "Bytes"},
		IndexAge: {"IndexAge", "Milliseconds"}, QueueAge: {"QueueAge", "Milliseconds"},
		RecordsStored: {"RecordsStored", "Count"}, RecordsRefused: {"RecordsRefused", "Count"}, WriteConflicts: {"WriteConflicts", "Count"},
		Delivered: {"Delivered", "Count"}, Retried: {"Retried", "Count"}, Failed: {"Failed", "Count"}, Held: {"Held", "Count"},
		CredentialsRefused: {"CredentialsRefused", "Count"},
	}
}

// String returns the metric's name in CloudWatch.
func (m Metric) String() string { return definitions()[m].name }

// The dimensions.
const (
	dimensionFunction     = "FunctionName"
	dimensionOrganization = "OrganizationId"
	dimensionCode         = "Code"
)

// maxValues is how many values of a metric a line may have.
const maxValues = 100

// set is what was collected for one line.
type set [metrics][]float64

// Config says where metrics belong.
type Config struct {
	Namespace string
	Function  string // its name
	// ByOrganization writes metrics for each organization, too.
	ByOrganization bool
}

// Recorder collects the metrics of invocations. It is safe for concurrent use.
type Recorder struct {
	out         io.Writer
	cfg         Config
	definitions *[metrics]definition

	mu            sync.Mutex
	total         set
	organizations map[string]*set
	refusals      map[string]float64 // by code
	buffer        []byte
}

// New returns a recorder that writes to out, such as a function's standard
// output.
func New(out io.Writer, cfg Config) *Recorder {
	return &Recorder{
		out: out, cfg: cfg, definitions: definitions(),
		organizations: map[string]*set{}, refusals: map[string]float64{},
	}
}

// Add counts n more. The organization is "" where none is known.
func (r *Recorder) Add(organization string, m Metric, n float64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.setsOf(organization) {
		if s == nil {
			continue
		}
		if len(s[m]) == 0 {
			s[m] = append(s[m], 0)
		}
		s[m][0] += n
	}
}

// Measure keeps a duration; a negative one is 0.
func (r *Recorder) Measure(organization string, m Metric, d time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.setsOf(organization) {
		if s == nil {
			continue
		}
		if s[m] = append(s[m], float64(max(0, d).Microseconds())/1000); len(s[m]) == maxValues {
			r.flush(now)
		}
	}
}

// Refuse counts a refused credential under the code of its answer, one of a
// few.
func (r *Recorder) Refuse(organization, code string) {
	r.Add(organization, CredentialsRefused, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[code]++
}

// setsOf are the function's set and, if there is one, the organization's.
func (r *Recorder) setsOf(organization string) [2]*set {
	if organization == "" || !r.cfg.ByOrganization {
		return [2]*set{&r.total}
	}
	s := r.organizations[organization]
	if s == nil {
		s = &set{}
		r.organizations[organization] = s
	}
	return [2]*set{&r.total, s}
}

// Flush writes what was collected since the last time, as of now, and begins
// anew. A line that cannot be written is lost.
func (r *Recorder) Flush(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush(now)
}

func (r *Recorder) flush(now time.Time) {
	r.write(now, dimensionFunction, r.cfg.Function, &r.total)
	for organization, s := range r.organizations {
		r.write(now, dimensionOrganization, organization, s)
		delete(r.organizations, organization)
	}
	for code, n := range r.refusals {
		r.write(now, dimensionCode, code, &set{CredentialsRefused: {n}})
		delete(r.refusals, code)
	}
}

// write writes a line of the set, unless it is empty, and empties it.
func (r *Recorder) write(now time.Time, dimension, of string, s *set) {
	b := r.buffer[:0]
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = appendText(append(b, `,"CloudWatchMetrics":[{"Namespace":`...), r.cfg.Namespace)
	b = append(appendText(append(b, `,"Dimensions":[[`...), dimension), `]],"Metrics":[`...)
	found := false
	for m := range s {
		if len(s[m]) == 0 {
			continue
		}
		if found {
			b = append(b, ',')
		}
		found = true
		b = appendText(append(b, `{"Name":`...), r.definitions[m].name)
		b = append(appendText(append(b, `,"Unit":`...), r.definitions[m].unit), '}')
	}
	if !found {
		return
	}
	b = appendText(append(appendText(append(b, `]}]},`...), dimension), ':'), of)
	for m := range s {
		if len(s[m]) == 0 {
			continue
		}
		b = append(appendText(append(b, ','), r.definitions[m].name), ':')
		b = appendValues(b, s[m])
		s[m] = s[m][:0]
	}
	b = append(b, "}\n"...)
	r.buffer = b
	_, _ = r.out.Write(r.buffer)
}

func appendValues(b []byte, values []float64) []byte {
	if len(values) == 1 {
		return appendNumber(b, values[0])
	}
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, v)
	}
	return append(b, ']')
}

func appendNumber(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', -1, 64) }

// appendText appends a text as JSON. What is no UTF-8 becomes U+FFFD.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}
