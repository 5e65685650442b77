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
// with 0. It catches typing mistakes and lets scanners of leaked secrets
// recognize a key; it proves nothing.
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

var errKeyText = errors.New("account: not the text of an API key")

// ParseKeyText checks form and checksum of a presented key, and returns the 8
// characters that find it, no secret. It accepts one form only: no white space,
// no other case of the prefix.
func ParseKeyText(text string) (id string, err error) {
	if len(text) != keyLength || !LooksLikeKey(text) || strings.Trim(text[len(keyPrefix):], base62Digits) != "" ||
		checksum(text[:keyBody]) != text[keyBody:] {
		return "", errKeyText
	}
	return text[len(keyPrefix):keyIDEnd], nil
}

// LooksLikeKey reports whether a text begins as an API key does.
func LooksLikeKey(text string) bool { return strings.HasPrefix(text, keyPrefix) }

func newKeyText() string {
	body := keyPrefix + randomBase62(keyIDLength+keyRandom)
	return body + checksum(body)
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [keyChecksum]byte
	for i := keyChecksum - 1; i >= 0; i-- {
		digits[i] = base62Digits[sum%base62Base]
		sum /= base62Base
	}
	return string(digits[:])
}
