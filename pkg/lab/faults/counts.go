package faults

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Counts is what went through a proxy.
type Counts struct {
	Requests map[string]int // on items, by operation
	Injected map[Fault]int

	Reads, Writes float64 // units, where they are counted; a condition that fails is one, but in a transaction
}

// Counts returns what has gone through so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Requests, c.Injected = maps.Clone(c.Requests), maps.Clone(c.Injected)
	return c
}

// Of is how often a fault happened.
func (c Counts) Of(f Fault) int { return c.Injected[f] }

// Calls is how many requests on items there were.
func (c Counts) Calls() (sum int) {
	for _, n := range c.Requests {
		sum += n
	}
	return sum
}

func (c Counts) String() string { return fmt.Sprintf("requests %v, faults %v", c.Requests, c.Injected) }

// askForUnits has a request ask for what it consumes.
func askForUnits(body []byte) []byte {
	if bytes.Contains(body, []byte(`"ReturnConsumedCapacity"`)) {
		return body
	}
	return append([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:]...)
}

// count adds the units that an answer names.
func (p *Proxy) count(a *http.Response, o operation) error {
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	a.Body = io.NopCloser(bytes.NewReader(body))
	sum := unitsOf(body)
	p.set(func() {
		if o.writes {
			p.counts.Writes += sum
		} else {
			p.counts.Reads += sum
		}
	})
	return nil
}

func unitsOf(body []byte) (sum float64) {
	if bytes.Contains(body, []byte("#ConditionalCheckFailedException")) {
		return 1
	}
	var said struct{ ConsumedCapacity jsontext.Value }
	if json.Unmarshal(body, &said) != nil || said.ConsumedCapacity == nil {
		return 0
	}
	if said.ConsumedCapacity.Kind() != '[' {
		said.ConsumedCapacity = slices.Concat([]byte("["), said.ConsumedCapacity, []byte("]"))
	}
	var consumed []struct{ CapacityUnits float64 }
	_ = json.Unmarshal(said.ConsumedCapacity, &consumed) // in another form: none
	for _, one := range consumed {
		sum += one.CapacityUnits
	}
	return sum
}
