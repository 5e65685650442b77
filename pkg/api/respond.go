package api

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"
)

// gzipFrom is the smallest body, in bytes, that is worth compressing.
const gzipFrom = 1 << 10

// Media types of answers.
const (
	JSON   = "application/json"
	NDJSON = "application/x-ndjson"
	CSV    = "text/csv"
)

// vary names every request header that an answer depends on.
const vary = "Authorization, X-API-Key, X-Site-Id, Accept, Accept-Encoding"

// varies says so, once, in addition to other values.
func varies(h http.Header) {
	if !slices.Contains(h.Values("Vary"), vary) {
		h.Add("Vary", vary)
	}
}

// respond writes a handler's answer.
func (x *exchange) respond(resp *Response) error {
	body, err := resp.marshal()
	if err != nil {
		return err
	}
	status := cmp.Or(resp.Status, x.op.Status)
	h := x.w.Header()
	for name, values := range resp.Header {
		h[name] = append(h[name], values...)
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", x.caching())
	}
	switch {
	case body == nil:
		x.writeHeader(status)
		return nil
	case x.notModified(resp.ETag, status, body):
		h.Del("Content-Encoding")
		x.writeHeader(http.StatusNotModified)
		return nil
	}
	if body, err = x.encode(body); err != nil {
		return err
	}
	x.write(status, body, cmp.Or(x.mediaType, x.op.MediaType, JSON))
	return nil
}

// reading reports whether the request only reads.
func (x *exchange) reading() bool {
	return x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
}

// caching says how the answer may be kept. That to a change may show a secret in full.
func (x *exchange) caching() string {
	if x.reading() {
		return "private, no-cache"
	}
	return "no-store"
}

func (resp *Response) marshal() ([]byte, error) {
	if resp.JSON == nil {
		return resp.Raw, nil
	}
	body, err := json.Marshal(resp.JSON, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal the answer: %w", err)
	}
	return body, nil
}

// notModified sets the entity tag, the handler's or for a read and for a change
// that is tagged the body's hash, and reports whether a read names it in
// If-None-Match.
func (x *exchange) notModified(tag string, status int, body []byte) bool {
	h := x.w.Header()
	if x.reading() {
		varies(h)
	}
	if tag == "" && status == http.StatusOK && (x.reading() || x.op.Tagged) {
		tag = ETagOf(body)
	}
	if tag == "" {
		return false
	}
	// A 304 has the tag of the full answer, compressed or not as this client
	// takes it, so that a cache finds what it is about.
	h.Set("ETag", tag)
	if x.compressed(body) {
		h.Set("ETag", gzipTag(tag))
	}
	return x.reading() && noneMatch(x.r.Header.Values("If-None-Match"), tag)
}

// compressed reports whether the body goes out compressed: when that pays
// and the client takes it. A request without Accept gets a plain body: a Lambda
// function answers bytes in base64, which API Gateway decodes only for a request
// whose first Accept is among the API's binary media types.
func (x *exchange) compressed(body []byte) bool {
	return (len(body) >= gzipFrom || x.stored()) && x.r.Header.Get("Accept") != "" &&
		quality(x.r.Header.Values("Accept-Encoding"), "*", "gzip") > 0
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

func (x *exchange) writeHeader(status int) {
	x.status = status
	x.w.WriteHeader(status)
}

func (x *exchange) write(status int, body []byte, mediaType string) {
	if h := x.w.Header(); h.Get("Content-Type") == "" {
		h.Set("Content-Type", mediaType)
	}
	x.writeHeader(status)
	if x.r.Method != http.MethodHead {
		// A client that went away is not our error.
		_, _ = x.w.Write(body)
	}
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
