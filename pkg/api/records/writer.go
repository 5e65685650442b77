package records

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/commerce-integration/service/pkg/api"
)

const (
	// maxPageBytes bounds a page.
	maxPageBytes = 5632 << 10
	// maxEscapedBytes bounds a page as the text within Lambda's JSON response,
	// escapes included: the response has at most 6 MiB, headers and all.
	maxEscapedBytes = 6_000_000
	// maxEscapeFactor is how many times longer text can become by its escapes.
	maxEscapeFactor = 2
	// pageOverhead is an upper bound of a page's bytes around its records.
	pageOverhead = 256
)

// escapes counts the bytes by which JSON becomes longer as a text within JSON.
func escapes(doc []byte) int {
	separators := bytes.Count(doc, []byte("\u2028")) + bytes.Count(doc, []byte("\u2029"))
	return bytes.Count(doc, []byte(`"`)) + bytes.Count(doc, []byte(`\`)) + 3*separators
}

// writer writes entries, each an object of JSON, into an answer, as far as they fit.
type writer struct {
	mediaType string
	columns   *columns // of CSV
	body      []byte
	escaped   int // bytes of the body as a text within JSON
	count     int
}

// newWriter begins an answer in the media type that the request asks for.
func newWriter(r *api.Request, c *columns) *writer {
	w := &writer{mediaType: r.MediaType, columns: c, body: []byte{}, escaped: pageOverhead}
	switch w.mediaType {
	case api.JSON:
		w.body = append(w.body, `{"data":[`...)
	case api.CSV:
		w.body = append(w.body, c.header...)
	}
	return w
}

// add reports whether the entry still fits.
func (w *writer) add(entry []byte) bool {
	before, escaped := len(w.body), w.escaped
	if cap(w.body)-before < 2*len(entry) { // append would grow a large body by little, and often
		w.body = slices.Grow(w.body, before+2*len(entry))
	}
	switch w.mediaType {
	case api.CSV:
		w.body = w.columns.appendRow(w.body, entry)
		for _, space := range []string{"\n", "\r", "\t"} { // the only control characters of texts
			escaped += bytes.Count(w.body[before:], []byte(space))
		}
	case api.NDJSON:
		w.body = append(append(w.body, entry...), '\n')
		escaped++
	default:
		w.body = append(append(w.body, entry...), ',')
	}
	escaped += len(w.body) - before + escapes(w.body[before:])
	if len(w.body)+pageOverhead > maxPageBytes || escaped > maxEscapedBytes {
		w.body = w.body[:before]
		return false
	}
	w.escaped = escaped
	w.count++
	return true
}

// end ends a page in JSON with its meta.
func (w *writer) end(meta string) {
	w.body = append(bytes.TrimSuffix(w.body, []byte(",")), `],"meta":`+meta+"}"...)
}

// answer is the answer, with the header that says how to go on.
func (w *writer) answer(header http.Header) *api.Response {
	if w.mediaType == api.CSV {
		header.Set("Content-Type", api.CSV+"; charset=utf-8; header=present")
	}
	return &api.Response{Raw: w.body, Header: header}
}
