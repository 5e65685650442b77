package listener

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/commerce-integration/service/pkg/base/value"
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
	Failed    bool  // answered with an error on purpose
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
	return e.Reason == nil && !e.Failed && e.Unreached == nil && (e.Answer == 0 || e.Answer/100 == 2)
}

// String is one line: time, type, id, object, signature and what is unusual.
// Text from outside is made harmless for a terminal.
func (e Event) String() string {
	return fmt.Sprintf("%s  %-20s  %-36s  %-36s  %s", value.TimeOf(e.At), shown(e.Type), shown(e.ID), shown(e.ObjectID), e.Outcome())
}

// Outcome is what the line of an event ends with.
func (e *Event) Outcome() string {
	line := string(e.Signature)
	if e.Reason != nil {
		line += ": " + e.Reason.Error()
	}
	if e.Repeat {
		line += "  repeat"
	}
	switch {
	case e.Failed:
		line += "  answered 500"
	case e.Unreached != nil:
		line += "  not forwarded: " + shown(e.Unreached.Error())
	case e.Answer != 0:
		line += fmt.Sprintf("  answered %d", e.Answer)
	}
	return line
}

// maxShown bounds what one line shows of a text from outside.
const maxShown = 100

func shown(text string) string {
	if text == "" {
		return "-"
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, text)
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}
