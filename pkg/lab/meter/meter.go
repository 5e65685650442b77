// Package meter counts the read and write units that DynamoDB says that calls consume, by operation. It counts what goes
// over the wire: for a client of a test, and in the proxy before a whole service.
package meter

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Units are what calls consumed.
type Units struct {
	Calls  int
	Reads  float64 // read units: 4 KB, strongly consistent
	Writes float64 // write units: 1 KB
}

// Meter sums the units of calls on items. It is safe for concurrent use. The table does not tell the units of a write
// whose condition fails: it counts as one, and not at all in a transaction.
type Meter struct {
	mu   sync.Mutex
	uses map[string]Units
}

// New returns a meter at zero.
func New() *Meter { return &Meter{uses: map[string]Units{}} }

// Reset begins again at zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.uses)
}

// Total returns the sum of all operations.
func (m *Meter) Total() (sum Units) {
	for _, u := range m.Uses() {
		sum = Units{sum.Calls + u.Calls, sum.Reads + u.Reads, sum.Writes + u.Writes}
	}
	return sum
}

// Uses returns the sum of each operation, such as PutItem.
func (m *Meter) Uses() map[string]Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.uses)
}

// Measure is an option of a client of a server that does not verify signatures.
func (m *Meter) Measure(o *dynamodb.Options) {
	o.HTTPClient = &http.Client{Transport: m.Transport(http.DefaultTransport)}
}

// Transport has requests ask for what they consume, and counts that.
func (m *Meter) Transport(inner http.RoundTripper) http.RoundTripper { return transport{m, inner} }

type transport struct {
	*Meter
	inner http.RoundTripper
}

// onItems are the operations that consume units, and whether they write.
var onItems = map[string]bool{
	"GetItem": false, "BatchGetItem": false, "Query": false, "Scan": false,
	"PutItem": true, "UpdateItem": true, "DeleteItem": true, "BatchWriteItem": true, "TransactWriteItems": true,
	"BatchExecuteStatement": true, // the service has none that read
}

// RoundTrip makes one request of the protocol.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	writes, counted := onItems[operation]
	if !counted {
		return t.inner.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read a request of the table: %w", err)
	}
	if !bytes.Contains(body, []byte(`"ReturnConsumedCapacity"`)) {
		body = slices.Concat([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:])
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read an answer of the table: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(said))
	t.add(operation, writes, unitsOf(said))
	return answer, nil
}

func (m *Meter) add(operation string, writes bool, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.uses[operation]
	if u.Calls++; writes {
		u.Writes += units
	} else {
		u.Reads += units
	}
	m.uses[operation] = u
}

// consumed is what an answer names for its table, or for each table or statement.
var consumed = regexp.MustCompile(`"CapacityUnits":([0-9.]+)`)

func unitsOf(answer []byte) (sum float64) {
	if bytes.Contains(answer, []byte("#ConditionalCheckFailedException")) {
		return 1
	}
	for _, found := range consumed.FindAllSubmatch(answer, -1) {
		units, _ := strconv.ParseFloat(string(found[1]), 64) // of digits
		sum += units
	}
	return sum
}
