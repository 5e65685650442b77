package sender_test

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/sender"
)

// The vector was made by openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY.
const (
	vectorKey       = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	vectorBody      = `{"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00","kind":"product","op":"put","version":7,"record":{"name":"Grüner Tee"}}`
	vectorSignature = "v1=53493849ed0fa53977740065df4c47ca2d828c8a884a33a814af7f873c27ecd1"
)

func TestASignatureIsThatOfTheVector(t *testing.T) {
	key, err := hex.DecodeString(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := sender.Sign(key, vectorBody); got != vectorSignature {
		t.Errorf("signed %s, want %s", got, vectorSignature)
	}
}

func TestAKeyOfAnotherFormIsRefused(t *testing.T) {
	if _, err := sender.ParseKey(vectorKey); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", vectorKey[2:], vectorKey + "00", "x" + vectorKey[1:], vectorKey + "\n"} {
		if _, err := sender.ParseKey(text); err == nil || len(text) > 0 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want an error that does not repeat it", text, err)
		}
	}
}

// TestTheManualSignsAsIngestVerifies runs the Python of DEPLOYING.
func TestTheManualSignsAsIngestVerifies(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	manual, err := os.ReadFile("../ops/DEPLOYING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "```python\nimport hashlib")
	snippet, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the manual has no Python that signs")
	}
	// It sends to this queue.
	const before = `
import sys
class Queue:
    def send_message(self, **message):
        print(message["MessageAttributes"]["signature"]["StringValue"])
sqs, queue_url, key, body = Queue(), "url", sys.argv[1], sys.argv[2]
import hashlib`
	out, err := exec.CommandContext(t.Context(), python, "-c", before+snippet, vectorKey, vectorBody).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != vectorSignature {
		t.Errorf("%v, printed %s; want %s", err, got, vectorSignature)
	}
}

// shelf keeps the keys of organizations, unsealed, and counts its reads.
type shelf struct {
	keys  map[value.ID]*sender.Keys
	reads int
	err   error
}

func (s *shelf) SenderKeys(_ context.Context, org value.ID) (*sender.Keys, error) {
	s.reads++
	return s.keys[org], s.err
}

func (s *shelf) rotate(t *testing.T, org value.ID) (key []byte) {
	t.Helper()
	next, text := sender.Rotate(org, s.keys[org], func(plain []byte, purpose string) string { return purpose + "\n" + string(plain) }, 1)
	s.keys[org] = next
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 32 {
		t.Fatalf("the key %s: %v, want 32 bytes in hexadecimal", text, err)
	}
	return key
}

func open(_ context.Context, text, purpose string) ([]byte, error) {
	plain, ok := strings.CutPrefix(text, purpose+"\n")
	if !ok {
		return nil, errors.New("sealed for another purpose")
	}
	return []byte(plain), nil
}

func TestTheTwoNewestKeysOfTheOrganizationAreGood(t *testing.T) {
	org, other := value.NewID(), value.NewID()
	s := &shelf{keys: map[value.ID]*sender.Keys{}}
	now := time.Unix(1_800_000_000, 0)
	v := sender.NewVerifier(s, open, func() time.Time { return now })
	check := func(what string, want bool, signature string) {
		t.Helper()
		if got, err := v.Verify(t.Context(), org, "body", signature); err != nil || got.Valid != want {
			t.Errorf("%s: valid %t, %v; want %t", what, got.Valid, err, want)
		}
	}
	foreign := s.rotate(t, other)
	check("unsigned, without keys", true, "")
	check("signed, without keys", true, sender.Sign(foreign, "body"))
	var keys [][]byte
	for range 3 {
		keys = append(keys, s.rotate(t, org))
		now = now.Add(sender.KeysMaxAge)
		newest := sender.Sign(keys[len(keys)-1], "body")
		check("the newest key", true, newest)
		check("unsigned", false, "")
		check("another body", false, sender.Sign(keys[len(keys)-1], "body "))
		check("another organization's key", false, sender.Sign(foreign, "body"))
		check("cut", false, newest[:len(newest)-1])
		check("without a version", false, newest[3:])
		check("in upper case", false, strings.ToUpper(newest))
	}
	check("the key before", true, sender.Sign(keys[1], "body"))
	check("the key before that", false, sender.Sign(keys[0], "body"))
	delete(s.keys, org)
	now = now.Add(sender.KeysMaxAge)
	check("unsigned, after the removal", true, "")
}

func TestKeysAreReadOnceAMinuteFoundOrNot(t *testing.T) {
	org, none := value.NewID(), value.NewID()
	s := &shelf{keys: map[value.ID]*sender.Keys{}}
	key := s.rotate(t, org)
	now := time.Unix(1_800_000_000, 0)
	v := sender.NewVerifier(s, open, func() time.Time { return now })
	pass := func(d time.Duration, reads int) {
		t.Helper()
		now = now.Add(d)
		for range 3 {
			if got, err := v.Verify(t.Context(), org, "body", sender.Sign(key, "body")); err != nil || !got.Valid {
				t.Errorf("the organization with keys: %t, %v", got.Valid, err)
			}
			if got, err := v.Verify(t.Context(), none, "body", ""); err != nil || !got.Valid {
				t.Errorf("the organization without keys: %t, %v", got.Valid, err)
			}
		}
		if s.reads != reads {
			t.Errorf("%d reads, want %d", s.reads, reads)
		}
	}
	pass(0, 2)
	pass(sender.KeysMaxAge-1, 2)
	pass(1, 4)

	// An error is not remembered, and tells nothing of the message.
	now, s.err = now.Add(sender.KeysMaxAge), errors.New("throttled")
	if got, err := v.Verify(t.Context(), none, "body", ""); err == nil || got.Valid {
		t.Errorf("while the table is throttled: %t, %v; want an error", got.Valid, err)
	}
	s.err = nil
	pass(0, 7)

	// Keys that cannot be opened are no reason to accept anything.
	s.keys[none] = s.keys[org]
	s.keys[none].OrganizationID = none
	now = now.Add(sender.KeysMaxAge)
	if got, err := v.Verify(t.Context(), none, "body", sender.Sign(key, "body")); err == nil || got.Valid {
		t.Errorf("keys that were sealed for another organization: %t, %v; want an error", got.Valid, err)
	}
}
