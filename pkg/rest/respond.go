package rest

import (
	"bytes"
	"fmt"
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
		h.Set("ETag", tag)
		if reading && noneMatch(x.r.Header.Values("If-None-Match"), tag) {
			x.status = http.StatusNotModified
			x.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	mediaType := x.op.MediaType
	if mediaType == "" {
		mediaType = "application/json"
	}
	x.write(status, body, mediaType)
	return nil
}

// write sends the body, compressed when that pays and the client takes it.
func (x *exchange) write(status int, body []byte, mediaType string) {
	x.status = status
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", mediaType)
	}
	if len(body) >= gzipFrom && h.Get("Content-Encoding") == "" && acceptsGzip(x.r.Header.Values("Accept-Encoding")) {
		body = compress(body)
		h.Set("Content-Encoding", "gzip")
		if tag := h.Get("ETag"); tag != "" {
			h.Set("ETag", gzipTag(tag))
		}
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

func mustMarshal(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain strings and numbers
	}
	return body
}
