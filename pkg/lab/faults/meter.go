package faults

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Units are what calls consumed.
type Units struct {
	Calls  int
	Reads  float64 // read units: 4 KB, strongly consistent
	Writes float64 // write units: 1 KB
}

// Meter sums the units that the server says that calls on items consume, by operation. It is safe for concurrent use. The
// server does not tell the units of a write whose condition fails: it counts as one, and not at all in a transaction.
type Meter struct {
	mu   sync.Mutex
	uses map[string]Units
}

// NewMeter returns a meter at zero.
func NewMeter() *Meter { return &Meter{uses: map[string]Units{}} }

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

// Measure is an option of a client of a server that does not verify signatures. It needs no proxy.
func (m *Meter) Measure(o *dynamodb.Options) { Config{Meter: m}.Install(o) }

// ask has a request on items ask for what it consumes.
func (m *Meter) ask(op string, body []byte) []byte {
	if _, known := operations[op]; m == nil || !known || bytes.Contains(body, []byte(`"ReturnConsumedCapacity"`)) {
		return body
	}
	return slices.Concat([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:])
}

// consumed is what an answer names for its table, or for each table or statement.
var consumed = regexp.MustCompile(`"CapacityUnits":([0-9.]+)`)

// count adds the units of an answer.
func (m *Meter) count(op string, answer []byte) {
	o, known := operations[op]
	if m == nil || !known {
		return
	}
	sum := 0.0
	for _, found := range consumed.FindAllSubmatch(answer, -1) {
		units, _ := strconv.ParseFloat(string(found[1]), 64) // of digits
		sum += units
	}
	if bytes.Contains(answer, []byte("#ConditionalCheckFailedException")) {
		sum = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.uses[op]
	if u.Calls++; o.writes {
		u.Writes += sum
	} else {
		u.Reads += sum
	}
	m.uses[op] = u
}
