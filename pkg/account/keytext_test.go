package account

import (
	"hash/crc32"
	"strings"
	"testing"
)

func TestAFreshKeyIsAccepted(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		key := newKeyText()
		id, err := ParseKeyText(key)
		if err != nil || len(key) != 55 || id != key[9:17] {
			t.Fatalf("%s: got %q, %v", key, id, err)
		}
		if seen[key] {
			t.Fatalf("%s came twice", key)
		}
		seen[key] = true
	}
}

// The vectors pin the format: keys in the hands of integrators depend on it.
var vectors = []string{
	"cis_live_00000000000000000000000000000000000000002WjV7i",
	"cis_live_zzzzzzzzABCDEFGHIJKLMNOPQRSTUVWXYZ0123453Uo2a0",
}

func TestOnlyTheOneFormOfAKeyIsAccepted(t *testing.T) {
	for _, key := range vectors {
		t.Run(key, func(t *testing.T) {
			if _, err := ParseKeyText(key); err != nil {
				t.Errorf("refused; its checksum should be %s", checksum(key[:keyBody]))
			}
		})
	}
	key := vectors[1]
	for what, text := range map[string]string{
		"empty":                  "",
		"another prefix":         "cis_test_" + key[9:],
		"prefix in capitals":     strings.ToUpper(key[:9]) + key[9:],
		"a space before":         " " + key,
		"a space behind":         key + " ",
		"too short":              key[:54],
		"too long":               key + "0",
		"no base62 digit":        key[:20] + "-" + key[21:],
		"not ASCII":              key[:20] + "é" + key[22:],
		"other checksum":         key[:54] + "1",
		"swapped digits":         key[:20] + key[21:22] + key[20:21] + key[22:],
		"checksum in lower case": key[:49] + strings.ToLower(key[49:]),
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := ParseKeyText(text); err == nil {
				t.Errorf("%q was accepted", text)
			}
		})
	}
}

func TestEverySingleTypoIsFound(t *testing.T) {
	key := vectors[1]
	for i := len(keyPrefix); i < len(key); i++ {
		for _, digit := range base62Digits {
			typo := key[:i] + string(digit) + key[i+1:]
			if _, err := ParseKeyText(typo); (err == nil) != (typo == key) {
				t.Fatalf("%s: got %v", typo, err)
			}
		}
	}
}

func TestRandomDigitsAreEvenlySpread(t *testing.T) {
	const n = 62 * 2000
	counts := map[rune]int{}
	for _, digit := range randomBase62(n) {
		counts[digit]++
	}
	// The standard deviation is 44; a modulo bias would show as 25% more.
	for _, digit := range base62Digits {
		if c := counts[digit]; c < 1700 || c > 2300 {
			t.Errorf("digit %c: %d of %d, want about 2000", digit, c, n)
		}
	}
}

func FuzzParseKeyText(f *testing.F) {
	for _, key := range vectors {
		f.Add(key)
	}
	f.Add("cis_live_")
	f.Add(newKeyText())
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseKeyText(text)
		if err != nil {
			return
		}
		if len(text) != keyLength || id != text[9:17] {
			t.Errorf("%q: parsed with id %q", text, id)
		}
		for _, digit := range text[len(keyPrefix):] {
			if !strings.ContainsRune(base62Digits, digit) {
				t.Errorf("%q: accepted with the digit %q", text, digit)
			}
		}
		var sum uint64 // read from its digits, where checksum writes them
		for _, digit := range text[keyBody:] {
			sum = sum*uint64(base62Base) + uint64(strings.IndexRune(base62Digits, digit))
		}
		if want := crc32.ChecksumIEEE([]byte(text[:keyBody])); sum != uint64(want) {
			t.Errorf("%q: accepted with the checksum %d, want %d", text, sum, want)
		}
	})
}
