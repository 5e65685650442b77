package api

import (
	"net/http"
	"strconv"
	"time"
)

// noticeMonths is the time from the announcement of an operation's end to the end.
const noticeMonths = 12

// Deprecation announces that an operation will be removed: its answers say so
// in headers, and the document shows it.
type Deprecation struct {
	Since time.Time // of the announcement: the start of a day in UTC
	Link  string    // the absolute URL of a page that says what to use instead
}

// Sunset is the time from which on the operation may be gone.
func (d *Deprecation) Sunset() time.Time { return d.Since.AddDate(0, noticeMonths, 0) }

// announce sets the headers of RFC 9745 (a structured field, the seconds since
// 1970 after @) and RFC 8594 (an HTTP date).
func (d *Deprecation) announce(h http.Header) {
	h.Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	h.Set("Sunset", d.Sunset().Format(http.TimeFormat))
	h.Add("Link", "<"+d.Link+`>; rel="deprecation"; type="text/html"`)
}
