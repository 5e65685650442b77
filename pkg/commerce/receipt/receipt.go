// Package receipt tells back offices what became of their records: how many were
// applied, and why the others were refused. A receipt is of the message that
// brings the records. One of posted records is made before its message: it holds
// the hash of the body, by which ingest knows that the organization's own
// credential brought the message, and it is completed once, by that message. Of a
// message that was sent to the queue ingest makes one if it refuses any record.
package receipt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"strings"
	"time"
	"unicode"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// Attribute is the message attribute, of type String, that has the id of the
	// message's receipt.
	Attribute = "receipt"
	// Retention is how long a receipt can be read.
	Retention = 7 * 24 * time.Hour
	// MaxRefusals is how many refused records a receipt names, of those that come
	// first in the message.
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

// Source is how records came.
type Source string

// The sources of records.
const (
	Posted  Source = "POSTED"
	Queued  Source = "QUEUE"
	Webhook Source = "WEBHOOK"
)

// Values lists every source of records.
func (Source) Values() []string { return []string{string(Posted), string(Queued), string(Webhook)} }

// Receipt is a receipt as the API shows it.
type Receipt struct {
	ID            value.ID    `json:"id"`
	Status        Status      `json:"status" doc:"PENDING: the records wait, usually for seconds. COMPLETED: each was applied or refused."`
	Source        Source      `json:"source" doc:"How the records arrived. POSTED: in a request. QUEUE: in a message to the service's queue, which has a receipt only if a record was refused. WEBHOOK: in a webhook of a source. An open enumeration."`
	SourceID      *value.ID   `json:"sourceId" doc:"The source that sent the webhook. null if it was none."`
	Topic         *string     `json:"topic" doc:"The topic of the webhook. null if it was none."`
	RecordCount   int         `json:"recordCount" doc:"The number of records in the request or message; 1 for a message that could not be parsed. 0 for a webhook that changes no record."`
	AcceptedCount int         `json:"acceptedCount" doc:"The number of records that were applied, or changed nothing because the stored record is the same or newer. 0 while PENDING."`
	RefusedCount  int         `json:"refusedCount" doc:"The number of refused records. 0 while PENDING."`
	Refusals      []Refusal   `json:"refusals" nullable:"false" doc:"The reasons of the first 100 refused records, in their order; in the list of receipts only the first."`
	CreatedAt     value.Time  `json:"createdAt" doc:"When the records were posted, or their message was sent."`
	CompletedAt   *value.Time `json:"completedAt" doc:"When it was completed. null while it is PENDING."`
	ExpiresAt     value.Time  `json:"expiresAt" doc:"When the receipt expires: 7 days after the records were posted, or after the message was processed."`
}

// Refusal says why a record was refused.
type Refusal struct {
	Position int       `json:"position" doc:"The position of the record in the request or message, from 0."`
	Kind     *string   `json:"kind" doc:"The record's kind: product, category, order, customer, invoice or stock. null if it names none of them."`
	RecordID *value.ID `json:"recordId" doc:"The record's id. null if the record has none."`
	Code     string    `json:"code" doc:"The reason, for programs, such as validation_failed or version_conflict."`
	Field    string    `json:"field" doc:"The path to the field in the body of the request or message, such as records[3].record.items[2].quantity. Empty if the fault is not in a field."`
	Message  string    `json:"message" doc:"How to correct the record, for people."`
}

// Stored is a receipt with what it is known by.
type Stored struct {
	OrganizationID value.ID `json:"organizationId"`
	ApplicationID  value.ID `json:"applicationId,omitzero"` // whose token posted; zero for a user
	Hash           []byte   `json:"hash"`                   // SHA-256 of the message's body
	Receipt        Receipt  `json:"receipt"`
}

// New makes the receipt of a message with so many posted records.
func New(organization, application value.ID, message []byte, records int, now value.Time) *Stored {
	hash := sha256.Sum256(message)
	return &Stored{OrganizationID: organization, ApplicationID: application, Hash: hash[:], Receipt: Receipt{
		ID: value.NewID(), Status: Pending, Source: Posted, RecordCount: records, Refusals: []Refusal{}, CreatedAt: now, ExpiresAt: now.Add(Retention),
	}}
}

// NewWebhook makes the receipt of a message with so many records that a source's
// webhook brought. Without records it is complete.
func NewWebhook(organization, source value.ID, topic string, message []byte, records int, now value.Time) *Stored {
	s := New(organization, value.ID{}, message, records, now)
	topic = clip(topic, maxField)
	s.Receipt.Source, s.Receipt.SourceID, s.Receipt.Topic = Webhook, &source, &topic
	if records == 0 {
		return s.Complete(nil, now)
	}
	return s
}

// NewQueued makes the receipt of a message with so many records that was sent to
// the queue at the time, 0 where that is not known. Its id is made of the time and
// the body: a message that comes twice has one receipt.
func NewQueued(organization value.ID, message []byte, records int, sent, now value.Time) *Stored {
	s := New(organization, value.ID{}, message, records, now)
	s.Receipt.ID, s.Receipt.Source = value.TimedID(sent, s.Hash), Queued
	s.Receipt.CreatedAt = min(cmp.Or(max(sent, 0), now), now)
	return s
}

// IsOf reports whether the receipt is of the message with the body.
func (s *Stored) IsOf(body string) bool {
	hash := sha256.Sum256([]byte(body))
	return bytes.Equal(s.Hash, hash[:])
}

// Complete returns the receipt with the refusals of its records, in the order
// of the message; the other records were accepted.
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

// clip cuts a text to so many bytes, and leaves out control characters: JSON has
// six bytes for each.
func clip(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), limit)], ""))
}
