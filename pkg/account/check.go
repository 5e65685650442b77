package account

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
)

// Bounds of text fields, in code points after trimming.
const (
	MaxName        = 120
	MaxDescription = 2_000
	MaxURL         = 2_048
)

// Checks collects the faults of a body. Each check of a text trims it in place;
// a nil text is absent and passes.
type Checks struct {
	details fault.Details
	unread  []string // fields that could not be decoded
}

// Read decodes a body. Fields that are wrong are collected, so that the checks
// of the others follow; the error is that of a body other than a JSON object.
func (c *Checks) Read(body []byte, dto any) (err error) {
	c.details, err = strictjson.Collect(body, dto)
	for _, d := range c.details {
		c.unread = append(c.unread, fieldOf(d.Field))
	}
	return err
}

// fieldOf is the field of the body that a path leads into.
func fieldOf(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
}

// Add adds a fault of a field, unless the field could not be decoded.
func (c *Checks) Add(field, code, format string, args ...any) {
	if !slices.Contains(c.unread, fieldOf(field)) {
		c.details.Add(fault.InBody, field, code, format, args...)
	}
}

// Refuse adds a fault when the condition holds.
func (c *Checks) Refuse(when bool, field, code, message string) {
	if when {
		c.Add(field, code, "%s", message)
	}
}

// Err is the fault that names every one that was added; nil without any.
func (c *Checks) Err() error { return c.details.Err() }

// Name checks a name of one line.
func (c *Checks) Name(text *string) {
	if text == nil {
		return
	}
	*text = strings.TrimSpace(*text)
	if n := utf8.RuneCountInString(*text); n < 1 || n > MaxName {
		c.Add("name", fault.DetailOutOfRange, "must have 1 to %d characters", MaxName)
	}
	// The decoder refuses the other control characters. Characters that turn the direction of text, or that nobody sees,
	// would let a name look like another.
	if at := strings.IndexFunc(*text, func(r rune) bool {
		return strings.ContainsRune("\t\r\n\u200b", r) || unicode.Is(unicode.Bidi_Control, r)
	}); at >= 0 {
		c.Add("name", fault.DetailFormat, "must be one line without control characters: character %d is %U",
			utf8.RuneCountInString((*text)[:at])+1, (*text)[at])
	}
}

// Description checks an optional description.
func (c *Checks) Description(text *string) {
	if text == nil {
		return
	}
	*text = strings.TrimSpace(*text)
	if utf8.RuneCountInString(*text) > MaxDescription {
		c.Add("description", fault.DetailOutOfRange, "must have at most %d characters", MaxDescription)
	}
}

func (c *Checks) website(text *string) {
	if text == nil {
		return
	}
	if _, problem := parseURL(text); problem != "" {
		c.Add("website", fault.DetailFormat, "%s", problem)
	}
}

// redirectURI allows what RFC 8252 allows: https, or http to the loopback
// address of the client's own machine, by number.
func (c *Checks) redirectURI(text *string) {
	if text == nil {
		return
	}
	u, problem := parseURL(text)
	switch {
	case problem != "":
	case u.User != nil:
		problem = "must not hold a user name or password"
	case u.Fragment != "" || strings.Contains(*text, "#"):
		problem = "must not have a fragment"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		problem = "must be https (http only for 127.0.0.1 and [::1])"
	}
	if problem != "" {
		c.Add("redirectUri", fault.DetailFormat, "%s", problem)
	}
}

// parseURL trims the text and reads an absolute http or https URL of at most
// MaxURL code points. problem names the fault, or is empty.
func parseURL(text *string) (u *url.URL, problem string) {
	*text = strings.TrimSpace(*text)
	if utf8.RuneCountInString(*text) > MaxURL {
		return nil, fmt.Sprintf("must have at most %d characters", MaxURL)
	}
	u, err := url.Parse(*text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" || !ValidHost(u) || strings.ContainsAny(*text, " \t\r\n") {
		return nil, "must be an absolute URL such as https://example.com/path"
	}
	return u, ""
}

// ValidHost reports whether the URL's host is a name or an address, and its port,
// where it has one, from 1 to 65535: other characters, and any digits, parse.
func ValidHost(u *url.URL) bool {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if _, err := netip.ParseAddr(name); err != nil {
			return false
		}
	} else if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("-._", r)
	}) {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && port > 0
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback())
}
