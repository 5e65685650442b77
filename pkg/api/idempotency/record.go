package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// Retention is how long an answer is kept.
	Retention = 24 * time.Hour
	// LockTime is how long a request may run before its lock can be taken over.
	// No function runs that long.
	LockTime = time.Minute
	// MaxKey is the most characters of a client's key.
	MaxKey = 128
)

// Key names a client's request within its organization: a hash of the
// principal and of the client's key, which may be longer than a key of the
// table should be and is nobody else's business.
type Key struct {
	Organization value.ID
	Hash         string // 64 hexadecimal digits
}

// NewKey is the key of a principal's request; the principal is named as the
// rate limit names it, without line feeds.
func NewKey(organization value.ID, principal, text string) Key {
	sum := sha256.Sum256([]byte(principal + "\n" + text))
	return Key{Organization: organization, Hash: hex.EncodeToString(sum[:])}
}

func (k Key) purpose() string { return "answer " + k.Organization.String() + " " + k.Hash }

// Fingerprint distinguishes requests.
type Fingerprint [sha256.Size]byte

// FingerprintOf hashes the parts of a request that make it another one.
func FingerprintOf(method, path, query string, body []byte, rights string) Fingerprint {
	h := sha256.New()
	for _, part := range []string{method, path, query, string(body), rights} {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return Fingerprint(h.Sum(nil))
}

// Record is the stored form of a request.
type Record struct {
	Key         Key
	Fingerprint Fingerprint
	Token       uint64     // new with every write
	LockedUntil value.Time // until the answer
	Answer      []byte     // sealed; nil: there is none yet
	ExpiresAt   value.Time
}

// Answer is an answer as it is kept.
type Answer struct {
	Status int         `json:"status"`
	ETag   string      `json:"etag,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"-"` // nil: without a body
}

// encode writes the answer: a line of JSON, then the body as it is.
func (a *Answer) encode() ([]byte, error) {
	head, err := json.Marshal(a, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return append(append(head, '\n'), a.Body...), nil
}

func decode(plain []byte) (*Answer, error) {
	head, body, found := bytes.Cut(plain, []byte{'\n'})
	a := new(Answer)
	if err := json.Unmarshal(head, a); err != nil || !found {
		return nil, fmt.Errorf("decode a kept answer of %d bytes: %w", len(plain), err)
	}
	if len(body) > 0 {
		a.Body = body
	}
	return a, nil
}

// Reseal returns the record's answer as again seals it.
func (r *Record) Reseal(again func(bytes []byte, purpose string) ([]byte, error)) ([]byte, error) {
	return again(r.Answer, r.Key.purpose())
}
