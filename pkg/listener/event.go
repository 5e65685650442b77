package listener

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json"
)

// Verdict is what the listener made of a webhook.
type Verdict string

// The verdicts.
const (
	Verified   Verdict = "verified"
	Unverified Verdict = "unverified" // no secret to check it with
	Invalid    Verdict = "invalid"
)

// Event is one webhook as it came in.
type Event struct {
	At       time.Time
	ID       string // webhook-id, the same on every attempt
	Type     string
	ObjectID string
	Verdict  Verdict
	Reason   error // of an invalid one
	Repeat   bool  // answered with success before
	Failed   bool  // answered with an error on purpose
	Header   http.Header
	Body     []byte
}

// payload is what the listener reads of a body.
type payload struct {
	Type string `json:"type"`
	Data struct {
		Object struct {
			ID string `json:"id"`
		} `json:"object"`
	} `json:"data"`
}

// describe takes the type and the object from the body. A body of another
// shape leaves them empty: what matters here is that it came and who signed it.
func (e *Event) describe() {
	var p payload
	if err := json.Unmarshal(e.Body, &p); err != nil {
		return
	}
	e.Type, e.ObjectID = p.Type, p.Data.Object.ID
}

// String is one line: time, type, id, object, verdict and what is remarkable.
// Text from outside is made harmless for a terminal.
func (e Event) String() string {
	line := fmt.Sprintf("%s  %-20s  %-36s  %-36s  %s", value.TimeOf(e.At), shown(e.Type), shown(e.ID), shown(e.ObjectID), e.Verdict)
	if e.Reason != nil {
		line += ": " + e.Reason.Error()
	}
	if e.Repeat {
		line += "  repeat"
	}
	if e.Failed {
		line += "  answered 500"
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
