package api

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
)

const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotency-Replayed"
)

// TakesIdempotencyKey reports whether a request may name itself. The name
// belongs to a principal, so a public operation takes none.
func (op *Operation) TakesIdempotencyKey() bool {
	return op.Method == http.MethodPost && op.Access != Public && !op.Unrepeated
}

// idempotencyKey reads the header; "" when the request has none.
func (x *exchange) idempotencyKey() (string, error) {
	given := x.r.Header.Values(idempotencyHeader)
	if len(given) == 0 || !x.op.TakesIdempotencyKey() {
		return "", nil
	}
	key := given[0]
	refuse := func(code, message string) (string, error) {
		return "", fault.Field(fault.InHeader, idempotencyHeader, code, "%s", message)
	}
	if len(given) > 1 {
		return refuse(fault.DetailDuplicate, "must be given once")
	}
	if key == "" || len(key) > idempotency.MaxKey {
		return refuse(fault.DetailOutOfRange, "must be 1 to 128 characters")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return refuse(fault.DetailFormat, "must be visible ASCII characters, without spaces")
		}
	}
	return key, nil
}

// once runs the handler, unless the request's idempotency key has an answer
// already. Only a success is kept.
func (x *exchange) once(body []byte, handle func(*idempotency.Lock) (*Response, error)) (*Response, error) {
	text, err := x.idempotencyKey()
	if err != nil {
		return nil, err
	}
	if text == "" {
		return handle(nil)
	}
	ctx, p := x.r.Context(), &x.caller.Principal
	// The gateway gives the parameters of a query in no order. Another credential
	// of the same caller may not see what the answer to this one shows.
	f := idempotency.FingerprintOf(x.r.Method, x.op.pathWith(x.rawPath), x.r.URL.Query().Encode(), body,
		fmt.Sprint(p.Scopes, p.SiteIDs, p.GrantID))
	lock, first, err := x.cfg.Idempotency.Lock(ctx, idempotency.NewKey(p.OrganizationID, p.Subject(), text), f)
	if err != nil {
		return nil, err
	}
	if first != nil {
		return replay(first), nil
	}
	succeeded := false
	defer func() {
		if !succeeded {
			x.warn("the lock of a request was not freed", lock.Free(ctx))
		}
	}()
	resp, err := handle(lock)
	if err != nil {
		return nil, err
	}
	a, err := resp.render(x.op)
	if err != nil || a.Status >= http.StatusMultipleChoices {
		return resp, err
	}
	succeeded = true
	if !resp.kept {
		x.warn("the answer to a request was not kept", lock.Keep(ctx, a))
	}
	return resp, nil
}

// warn logs what fails after a request has its answer.
func (x *exchange) warn(message string, err error) {
	if err != nil {
		x.cfg.Logger.LogAttrs(x.r.Context(), slog.LevelWarn, message, slog.String("path", x.op.Path), slog.String("error", err.Error()))
	}
}

// render marshals the answer for good and returns the stored part.
func (resp *Response) render(op *Operation) (*idempotency.Answer, error) {
	body, err := resp.marshal()
	if err != nil {
		return nil, err
	}
	resp.JSON, resp.Raw = nil, body
	return &idempotency.Answer{Status: cmp.Or(resp.Status, op.Status), ETag: resp.ETag, Header: resp.Header, Body: body}, nil
}

func replay(a *idempotency.Answer) *Response {
	header := maps.Clone(a.Header)
	if header == nil {
		header = http.Header{}
	}
	header.Set(replayedHeader, "true")
	return &Response{Status: a.Status, Raw: a.Body, ETag: a.ETag, Header: header}
}

// Create answers v as [Request.Created] does, once create has made it. create
// must store what it is given, which is nil when the request names no
// idempotency key, in the transaction that makes v.
func (r *Request) Create(path string, v any, etag string, create func(*idempotency.Kept) error) (*Response, error) {
	resp, err := r.Created(path, v, etag)
	if err != nil {
		return nil, err
	}
	kept, err := r.Kept(resp)
	if err != nil {
		return nil, err
	}
	return resp, create(kept)
}

// Kept makes the writes that must be in the same transaction as the action that
// resp answers, so that a repetition of the request is answered by resp whatever fails
// after it. It is nil when the request names no idempotency key.
func (r *Request) Kept(resp *Response) (*idempotency.Kept, error) {
	if r.lock == nil {
		return nil, nil
	}
	a, err := resp.render(r.op)
	if err != nil {
		return nil, err
	}
	resp.kept = true
	return r.lock.Kept(a)
}
