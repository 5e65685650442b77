// Package receipt is what a back office that posts records gets: by its id it
// learns how many of them were applied, and why the others were refused. A
// receipt is of the message that brings the records: it holds the hash of its
// body, by which ingest knows that the organization's own credential brought the
// message, and it is completed once, by that message.
package receipt

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

const (
	// Attribute is the message attribute, of type String, that has the id of the
	// message's receipt.
	Attribute = "receipt"
	// Retention is how long a receipt can be read.
	Retention = 7 * 24 * time.Hour
	// MaxRefusals is how many refused records a receipt names, of those that come
	// first in the request.
	MaxRefusals = 100

	maxField   = 200 // bytes of a refusal's field
	maxMessage = 500 // and of its message
)

// Status is a receipt's status.
type Status string

// The statuses of a receipt.
const (
	Pending   Status = "PENDING"
	Completed Status = "COMPLETED"
)

// Values lists every status of a receipt.
func (Status) Values() []string { return []string{string(Pending), string(Completed)} }

// Receipt is a receipt as the API shows it.
type Receipt struct {
	ID            value.ID    `json:"id"`
	Status        Status      `json:"status" doc:"PENDING: the records wait, for seconds as a rule. COMPLETED: each was applied or refused."`
	RecordCount   int         `json:"recordCount" doc:"The records of the request."`
	AcceptedCount int         `json:"acceptedCount" doc:"Those that were applied, or changed nothing: what is stored is the same or newer. 0 while it is PENDING."`
	RefusedCount  int         `json:"refusedCount" doc:"Those that were refused. 0 while it is PENDING."`
	Refusals      []Refusal   `json:"refusals" nullable:"false" doc:"Why records were refused, in the order of the request; of the first 100 of them; in the list of receipts of the first only."`
	CreatedAt     value.Time  `json:"createdAt"`
	CompletedAt   *value.Time `json:"completedAt" doc:"When it was completed. null while it is PENDING."`
	ExpiresAt     value.Time  `json:"expiresAt" doc:"Until when it can be read: 7 days."`
}

// Refusal says why a record was refused.
type Refusal struct {
	Position int    `json:"position" doc:"The record's in the request, from 0."`
	Code     string `json:"code" doc:"The reason, for programs, such as validation_failed or version_conflict."`
	Field    string `json:"field" doc:"The path to the field in the body of the request, such as records[3].record.items[2].quantity."`
	Message  string `json:"message" doc:"How to mend the record, for people."`
}

// Stored is a receipt with what it is known by.
type Stored struct {
	OrganizationID value.ID `json:"organizationId"`
	ApplicationID  value.ID `json:"applicationId,omitzero"` // whose token posted; zero for a user
	Hash           []byte   `json:"hash"`                   // SHA-256 of the message's body
	Receipt        Receipt  `json:"receipt"`
}

// New makes the receipt of a message with so many records.
func New(organization, application value.ID, message []byte, records int, now value.Time) *Stored {
	hash := sha256.Sum256(message)
	return &Stored{OrganizationID: organization, ApplicationID: application, Hash: hash[:], Receipt: Receipt{
		ID: value.NewID(), Status: Pending, RecordCount: records, Refusals: []Refusal{}, CreatedAt: now, ExpiresAt: now.Add(Retention),
	}}
}

// IsOf reports whether the receipt is of the message with the body.
func (s *Stored) IsOf(body string) bool {
	hash := sha256.Sum256([]byte(body))
	return bytes.Equal(s.Hash, hash[:])
}

// Complete returns the receipt with the refusals of its records, in the order
// of the request; the other records were accepted.
func (s *Stored) Complete(refusals []Refusal, now value.Time) *Stored {
	next := *s
	r := &next.Receipt
	r.Status, r.CompletedAt = Completed, &now
	r.RefusedCount = min(len(refusals), r.RecordCount)
	r.AcceptedCount = r.RecordCount - r.RefusedCount
	r.Refusals = make([]Refusal, min(len(refusals), MaxRefusals))
	for i := range r.Refusals {
		r.Refusals[i] = refusals[i]
		r.Refusals[i].Field, r.Refusals[i].Message = clip(refusals[i].Field, maxField), clip(refusals[i].Message, maxMessage)
	}
	return &next
}

// clip cuts a text to so many bytes.
func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
