package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"
)

// gzipFrom is the smallest body, in bytes, that is worth compressing.
const gzipFrom = 1 << 10

// vary names every request header that an answer depends on.
const vary = "Authorization, X-API-Key, X-Site-Id, Accept-Encoding"

// respond writes a handler's answer: entity tag, 304, compression.
func (x *exchange) respond(resp *Response) error {
	body := resp.Raw
	if resp.JSON != nil {
		var err error
		if body, err = json.Marshal(resp.JSON, json.Deterministic(true)); err != nil {
			return fmt.Errorf("marshal the answer: %w", err)
		}
	}
	status := resp.Status
	if status == 0 {
		status = x.op.Status
	}
	h := x.w.Header()
	for name, values := range resp.Header {
		h[name] = values
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache")
	}
	if body == nil {
		x.status = status
		x.w.WriteHeader(status)
		return nil
	}
	reading := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	tag := resp.ETag
	if tag == "" && reading && status == http.StatusOK {
		tag = ETagOf(body)
	}
	if reading {
		h.Set("Vary", vary)
	}
	if tag != "" {
		// Compressed or not, the answer to this client has one tag, so that
		// a cache finds what a 304 is about.
		if x.compressed(body) {
			h.Set("ETag", gzipTag(tag))
		} else {
			h.Set("ETag", tag)
		}
		if reading && noneMatch(x.r.Header.Values("If-None-Match"), tag) {
			h.Del("Content-Encoding")
			x.status = http.StatusNotModified
			x.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	mediaType := x.op.MediaType
	if mediaType == "" {
		mediaType = "application/json"
	}
	body, err := x.encode(body)
	if err != nil {
		return err
	}
	x.write(status, body, mediaType)
	return nil
}

// compressed reports whether the body goes out compressed: when that pays
// and the client takes it.
func (x *exchange) compressed(body []byte) bool {
	return (len(body) >= gzipFrom || x.stored()) && acceptsGzip(x.r.Header.Values("Accept-Encoding"))
}

// stored reports whether the handler's body is compressed already.
func (x *exchange) stored() bool { return x.w.Header().Get("Content-Encoding") != "" }

// encode compresses the body, or unpacks a stored one, as the client takes it.
func (x *exchange) encode(body []byte) ([]byte, error) {
	switch stored, compressed := x.stored(), x.compressed(body); {
	case compressed && !stored:
		x.w.Header().Set("Content-Encoding", "gzip")
		return compress(body), nil
	case stored && !compressed:
		x.w.Header().Del("Content-Encoding")
		return unpack(body)
	}
	return body, nil
}

func (x *exchange) write(status int, body []byte, mediaType string) {
	x.status = status
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", mediaType)
	}
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		// A client that went away is no error of ours.
		_, _ = x.w.Write(body)
	}
}

// acceptsGzip looks for gzip or * with a quality above zero.
func acceptsGzip(headers []string) bool {
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.TrimSpace(coding)
		if coding != "gzip" && coding != "*" {
			continue
		}
		_, quality, given := strings.Cut(params, "q=")
		q, err := strconv.ParseFloat(strings.TrimSpace(quality), 64)
		return !given || err == nil && q > 0
	}
	return false
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func compress(body []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer) //nolint:forcetypeassert // the pool holds nothing else
	defer gzipWriters.Put(w)
	var out bytes.Buffer
	out.Grow(len(body) / 4)
	w.Reset(&out)
	// Writing to memory does not fail.
	_, _ = w.Write(body)
	_ = w.Close()
	return out.Bytes()
}

func unpack(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unpack a stored body: %w", err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack a stored body: %w", err)
	}
	return out, nil
}

func mustMarshal(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain strings and numbers
	}
	return body
}
