package listener

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// Signature is the result of checking a webhook's signature.
type Signature string

// The results.
const (
	Verified   Signature = "verified"
	Unverified Signature = "unverified" // no secret to check it with
	Invalid    Signature = "invalid"
)

// Event is one webhook as it came in.
type Event struct {
	At        time.Time
	ID        string // webhook-id, the same on every attempt
	Type      string
	ObjectID  string
	Signature Signature
	Reason    error // of an invalid one
	Repeat    bool  // answered with success before
	Answer    int   // the status of the URL that it was forwarded to; 0: none
	Unreached error // why that URL did not answer
	Header    http.Header
	Body      []byte
}

// describe takes the type and the object from the body. A body of another
// shape leaves them empty: it came all the same, and was signed or not.
func (e *Event) describe() {
	var payload struct {
		Type string `json:"type"`
		Data struct {
			Object struct {
				ID string `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	if json.Unmarshal(e.Body, &payload) == nil {
		e.Type, e.ObjectID = payload.Type, payload.Data.Object.ID
	}
}

// good tells whether the event is answered with success.
func (e *Event) good() bool {
	return e.Reason == nil && e.Unreached == nil && (e.Answer == 0 || e.Answer/100 == 2)
}

// Outcome says in words how the event was judged and answered.
func (e *Event) Outcome() string {
	line := string(e.Signature)
	if e.Reason != nil {
		line += ": " + e.Reason.Error()
	}
	if e.Repeat {
		line += "  repeat"
	}
	switch {
	case e.Unreached != nil:
		line += "  not forwarded: " + e.Unreached.Error()
	case e.Answer != 0:
		line += fmt.Sprintf("  answered %d", e.Answer)
	}
	return line
}
