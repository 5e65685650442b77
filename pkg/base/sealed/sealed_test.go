package sealed_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/sealed"
)

func key(fill byte) []byte { return bytes.Repeat([]byte{fill}, sealed.KeySize) }

// maxOverhead is what sealing adds to bytes: version, key id, nonce and tag.
const maxOverhead = 40

func newBox(t *testing.T, current []byte, older ...[]byte) *sealed.Box {
	t.Helper()
	box, err := sealed.NewBox(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestSealedTextOpensForItsPurpose(t *testing.T) {
	box := newBox(t, key(1))
	for _, plain := range []string{"", "whsec_abc", strings.Repeat("x", 10_000)} {
		t.Run(plain, func(t *testing.T) {
			text := box.Seal([]byte(plain), "endpoint 1")
			if len(plain) > 3 && strings.Contains(text, plain) {
				t.Errorf("Seal(%q) = %q, which shows the plain text", plain, text)
			}
			got, err := box.Open(text, "endpoint 1")
			if err != nil || string(got) != plain {
				t.Errorf("Open(Seal(%q)) = %q, %v", plain, got, err)
			}
			sealed := box.SealBytes([]byte(plain), "endpoint 1")
			if len(plain) > 3 && bytes.Contains(sealed, []byte(plain)) || len(sealed) > len(plain)+maxOverhead {
				t.Errorf("SealBytes(%q) has %d bytes, %q", plain, len(sealed), sealed)
			}
			got, err = box.OpenBytes(sealed, "endpoint 1")
			if err != nil || string(got) != plain {
				t.Errorf("OpenBytes(SealBytes(%q)) = %q, %v", plain, got, err)
			}
			if _, err := box.OpenBytes(sealed, "endpoint 2"); err == nil {
				t.Errorf("SealBytes(%q) opened for another purpose", plain)
			}
		})
	}
}

func TestSealingTwiceGivesTwoTexts(t *testing.T) {
	box := newBox(t, key(1))
	if a, b := box.Seal([]byte("x"), "p"), box.Seal([]byte("x"), "p"); a == b {
		t.Errorf("both sealed as %q", a)
	}
}

func TestTextsOfOlderKeysStillOpen(t *testing.T) {
	text := newBox(t, key(1)).Seal([]byte("old"), "p")
	got, err := newBox(t, key(2), key(1)).Open(text, "p")
	if err != nil || string(got) != "old" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := newBox(t, key(2)).Open(text, "p"); err == nil {
		t.Error("opened without the key that sealed it")
	}
}

func TestDamagedOrForeignTextsAreRefused(t *testing.T) {
	box := newBox(t, key(1))
	text := box.Seal([]byte("plain"), "endpoint 1")
	flipped := []byte(text)
	if flipped[len(flipped)-1] == 'A' {
		flipped[len(flipped)-1] = 'w'
	} else {
		flipped[len(flipped)-1] = 'A'
	}
	for name, c := range map[string]struct{ text, purpose string }{
		"another purpose":  {text, "endpoint 2"},
		"changed":          {string(flipped), "endpoint 1"},
		"cut":              {text[:len(text)-6], "endpoint 1"},
		"no nonce":         {text[:strings.LastIndexByte(text, '.')+5], "endpoint 1"},
		"another version":  {"s2" + text[2:], "endpoint 1"},
		"empty":            {"", "endpoint 1"},
		"not base64":       {text[:strings.LastIndexByte(text, '.')+1] + "!!!!", "endpoint 1"},
		"plain left as is": {"whsec_abc", "endpoint 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := box.Open(c.text, c.purpose); err == nil {
				t.Errorf("Open(%q, %q) = %q, want an error", c.text, c.purpose, got)
			}
		})
	}
}

func TestKeysOfAnotherLengthAreRefused(t *testing.T) {
	for _, size := range []int{0, 16, 31, 33} {
		if _, err := sealed.NewBox(make([]byte, size)); err == nil {
			t.Errorf("a key of %d bytes was accepted", size)
		}
	}
}
