package api

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// gzipSuffix marks the tag of a compressed representation, since a strong
// tag names bytes (RFC 9110, section 8.8.3.3). It is ignored in comparisons.
const gzipSuffix = "-gzip"

// ETagOf returns the strong entity tag of a body.
func ETagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// IfMatch documents the header of a precondition. Operations of PATCH and DELETE
// need not declare it.
func IfMatch() Param {
	return Param{Name: "If-Match", In: fault.InHeader, Type: "string", Description: "412 unless one of these entity tags is current; * matches any."}
}

// CheckIfMatch answers 412 unless the request has no If-Match or one of its
// tags is current; where nothing exists yet, as "" says, none is. A weak tag
// never matches.
func (r *Request) CheckIfMatch(current string) error {
	return r.checkIfMatch(current, func(tag string) string { return tag })
}

// CheckIfMatchPrefix is CheckIfMatch for tags of two parts, "a.b". Only the
// first part is compared.
func (r *Request) CheckIfMatchPrefix(current string) error {
	return r.checkIfMatch(current, func(tag string) string {
		first, _, _ := strings.Cut(tag, ".")
		return strings.TrimSuffix(first, `"`)
	})
}

// checkIfMatch compares what compared makes of the tags.
func (r *Request) checkIfMatch(current string, compared func(tag string) string) error {
	values := r.Header.Values("If-Match")
	for _, tag := range entityTags(values) {
		if tag == "*" && current != "" || !strings.HasPrefix(tag, "W/") && compared(plainTag(tag)) == compared(current) {
			return nil
		}
	}
	if len(values) == 0 {
		return nil
	}
	return fault.New(fault.PreconditionFailed, "precondition_failed",
		"the resource has changed: read it again and send its new ETag in If-Match")
}

// noneMatch reports whether If-None-Match names the tag (weak comparison).
func noneMatch(values []string, current string) bool {
	for _, tag := range entityTags(values) {
		if tag == "*" || plainTag(strings.TrimPrefix(tag, "W/")) == current {
			return true
		}
	}
	return false
}

func plainTag(tag string) string {
	if plain, ok := strings.CutSuffix(tag, gzipSuffix+`"`); ok {
		return plain + `"`
	}
	return tag
}

func gzipTag(tag string) string { return strings.TrimSuffix(tag, `"`) + gzipSuffix + `"` }

func entityTags(values []string) []string {
	var tags []string
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
