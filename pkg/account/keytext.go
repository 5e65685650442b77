package account

import (
	"errors"
	"hash/crc32"
	"strings"
)

// The text of an API key, 55 characters:
//
//	cis_live_  8 key id  32 random  6 CRC-32
//
// All but the prefix are base62 digits (0-9 A-Z a-z, most significant
// first). The checksum is the IEEE CRC-32 of everything before it, padded
// with 0. It catches typing mistakes and lets scanners of leaked secrets tell a
// key from noise; it proves nothing.
const (
	keyPrefix   = "cis_live_"
	keyIDLength = 8
	keyRandom   = 32
	keyChecksum = 6
	keyBody     = len(keyPrefix) + keyIDLength + keyRandom
	keyLength   = keyBody + keyChecksum
	keyIDEnd    = len(keyPrefix) + keyIDLength
	base62Base  = uint32(len(base62Digits))
)

// KeyText is the text of an API key whose form and checksum are right.
type KeyText struct{ text string }

var errKeyText = errors.New("account: not the text of an API key")

// ParseKeyText checks form and checksum of a presented key. It accepts one
// form only: no white space, no other case of the prefix.
func ParseKeyText(text string) (KeyText, error) {
	if len(text) != keyLength || !LooksLikeKey(text) {
		return KeyText{}, errKeyText
	}
	for i := len(keyPrefix); i < keyBody; i++ {
		if strings.IndexByte(base62Digits, text[i]) < 0 {
			return KeyText{}, errKeyText
		}
	}
	if checksum(text[:keyBody]) != text[keyBody:] {
		return KeyText{}, errKeyText
	}
	return KeyText{text}, nil
}

// LooksLikeKey reports whether a text begins as an API key does.
func LooksLikeKey(text string) bool { return strings.HasPrefix(text, keyPrefix) }

func newKeyText() KeyText {
	body := keyPrefix + randomBase62(keyIDLength+keyRandom)
	return KeyText{body + checksum(body)}
}

// String returns the whole key, a secret.
func (k KeyText) String() string { return k.text }

// ID returns the 8 characters that find the key, no secret.
func (k KeyText) ID() string { return k.text[len(keyPrefix):keyIDEnd] }

// Hash returns the hash that is stored of the key.
func (k KeyText) Hash() Hash { return HashSecret(k.text) }

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [keyChecksum]byte
	for i := keyChecksum - 1; i >= 0; i-- {
		digits[i] = base62Digits[sum%base62Base]
		sum /= base62Base
	}
	return string(digits[:])
}
