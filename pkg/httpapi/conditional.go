package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/commerce-integration/service/pkg/fault"
)

// gzipSuffix marks the tag of a compressed representation, since a strong
// tag names bytes (RFC 9110, section 8.8.3.3). It is ignored in comparisons.
const gzipSuffix = "-gzip"

// ETagOf returns the strong entity tag of a body.
func ETagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// CheckIfMatch answers 412 unless the request has no If-Match or one of its
// tags is current. A weak tag never matches.
func (r *Request) CheckIfMatch(current string) error {
	return r.checkIfMatch(func(tag string) bool { return tag == current })
}

// CheckIfMatchPrefix is CheckIfMatch for tags of two parts, "a.b". Only the
// first part is compared.
func (r *Request) CheckIfMatchPrefix(current string) error {
	head, _, _ := strings.Cut(current, ".")
	return r.checkIfMatch(func(tag string) bool {
		first, _, _ := strings.Cut(tag, ".")
		return strings.TrimSuffix(first, `"`) == strings.TrimSuffix(head, `"`)
	})
}

func (r *Request) checkIfMatch(matches func(tag string) bool) error {
	values := r.Header.Values("If-Match")
	if len(values) == 0 {
		return nil
	}
	for _, tag := range entityTags(values) {
		if tag == "*" || !strings.HasPrefix(tag, "W/") && matches(plainTag(tag)) {
			return nil
		}
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
	if strings.HasSuffix(tag, gzipSuffix+`"`) {
		return strings.TrimSuffix(tag, gzipSuffix+`"`) + `"`
	}
	return tag
}

func gzipTag(tag string) string { return strings.TrimSuffix(tag, `"`) + gzipSuffix + `"` }

func entityTags(values []string) []string {
	var tags []string
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}
