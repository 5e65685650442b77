package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// noticeMonths is the least time from the announcement of an operation's end
// to the end.
const noticeMonths = 12

// Deprecation announces that an operation will be removed: its answers say so
// in headers, and the document shows it. [MustDeprecate] makes one.
type Deprecation struct {
	Since  time.Time // of the announcement
	Sunset time.Time // from when on the operation may be gone
	Link   string    // a page that says what to use instead
}

// MustDeprecate announces the end of an operation. since and sunset are days,
// YYYY-MM-DD, at least twelve months apart; link is an absolute URL. It panics
// on anything else.
func MustDeprecate(since, sunset, link string) *Deprecation {
	from, errSince := time.Parse(time.DateOnly, since)
	to, errSunset := time.Parse(time.DateOnly, sunset)
	u, errLink := url.Parse(link)
	switch {
	case errSince != nil || errSunset != nil || errLink != nil || u.Host == "":
		panic(fmt.Sprintf("api: deprecation from %q to %q with %q: want two days and an absolute URL", since, sunset, link))
	case to.Before(from.AddDate(0, noticeMonths, 0)):
		panic(fmt.Sprintf("api: deprecation from %s to %s: want at least %d months", since, sunset, noticeMonths))
	}
	return &Deprecation{Since: from, Sunset: to, Link: link}
}

// announce sets the headers of RFC 9745 (a structured field, the seconds since
// 1970 after @) and RFC 8594 (an HTTP date).
func (d *Deprecation) announce(h http.Header) {
	h.Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	h.Set("Sunset", d.Sunset.Format(http.TimeFormat))
	h.Add("Link", "<"+d.Link+`>; rel="deprecation"; type="text/html"`)
}
