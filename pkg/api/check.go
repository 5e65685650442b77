package api

import (
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Names of the parameters that ask for a site.
const (
	siteHeader = "X-Site-Id"
	siteQuery  = "siteId"
)

// SiteHeader documents the header that asks for a site. An operation that
// declares it finds the site in its [Request].
func SiteHeader() Param {
	return Param{Name: siteHeader, In: fault.InHeader, Type: "string", Format: "uuid", Description: "Only records that this site shows. The same as siteId."}
}

// SiteQuery documents the query parameter that does the same.
func SiteQuery() Param {
	return Param{Name: siteQuery, In: fault.InQuery, Type: "string", Format: "uuid", Description: "Only records that this site shows."}
}

// codeAddressForbidden is that of a key that is used from another network.
const codeAddressForbidden = "ip_forbidden"

// MaxBody is the largest request body, in bytes, of an operation that names no other.
const MaxBody = 256 << 10

// authorize makes the checks that need no more than the credential:
// credentials, rate, scope and site.
func (x *exchange) authorize() error {
	if x.op.Access == Public {
		return nil
	}
	p := &x.caller.Principal
	if x.caller.Err != nil {
		return &fault.Error{Kind: fault.Unauthenticated, Code: "unauthenticated", Message: "send acceptable credentials", Cause: x.caller.Err}
	}
	if !p.ExpiresAt.IsZero() && !x.cfg.Clock().Before(p.ExpiresAt) {
		return fault.New(fault.Unauthenticated, "token_expired", "the credential has expired; get a new one")
	}
	if err := x.refresh(p); err != nil {
		return err
	}
	// Before it is counted: who stole a key does not use up its application's limit.
	if !p.MayComeFrom(x.caller.SourceAddress) {
		return fault.New(fault.Forbidden, codeAddressForbidden, "the key is not accepted from %s: its allowedNetworks do not have this address", x.caller.SourceAddress)
	}
	if x.weight == 0 { // otherwise it was counted with the request that it is a part of
		if err := x.admit(1); err != nil {
			return err
		}
	}
	switch {
	case (x.op.Access == Developer || x.op.Access == User) && p.Kind != auth.KindUser:
		return fault.New(fault.Forbidden, "insufficient_scope", "this operation takes a user's token only")
	case (x.op.Access == Manager || x.op.Access == Subscriber) && p.Kind == auth.KindKey:
		return fault.New(fault.Forbidden, "insufficient_scope", "this operation takes a bearer token only")
	case x.op.Access == Manager && p.OfPortal():
		return fault.New(fault.Forbidden, "insufficient_scope", "this operation does not take the token of a portal session")
	}
	if err := x.op.checkScope(p.Scopes); err != nil {
		return err
	}
	if p.SiteIDs != nil && !x.op.Limited() {
		return fault.New(fault.Forbidden, "site_forbidden", "the credential is limited to sites, and this operation concerns every site")
	}
	return x.readSite(p)
}

// MissingScope is the fault of a credential that lacks the scope, or each of
// several of which one would do.
func MissingScope(scopes ...auth.Scope) error { return missingScopes(scopes, " or ") }

func missingScopes(scopes auth.Scopes, joint string) error {
	const code = "insufficient_scope"
	var details fault.Details
	for _, name := range scopes.Names() {
		details.Add(fault.InHeader, name, code, "the credential lacks this scope")
	}
	f := fault.New(fault.Forbidden, code, "the credential lacks the scope %s", strings.Join(scopes.Names(), joint))
	f.Details = details
	return f
}

// CheckHolds refuses a request by which more could be reached than the caller
// holds, with every scope that he lacks.
func (r *Request) CheckHolds(scopes ...auth.Scope) error {
	if lacked := r.Principal.Lacks(scopes...); len(lacked) > 0 {
		return missingScopes(lacked, " and ")
	}
	return nil
}

// refresh brings the principal up to date where it may be some minutes old.
func (x *exchange) refresh(p *auth.Principal) error {
	if x.cfg.Refresh == nil {
		return nil
	}
	current, denial, err := x.cfg.Refresh(x.r.Context(), *p)
	if err != nil {
		return fmt.Errorf("refresh the principal: %w", err)
	}
	if denial != nil {
		return fault.New(fault.Unauthenticated, denial.Code, "%s", denial.Message)
	}
	*p = current
	return nil
}

// admit counts the request, or so much more of it, against the limits of the
// principal and of its organization.
func (x *exchange) admit(weight int) error {
	p := &x.caller.Principal
	d, err := x.cfg.Limiter.Admit(x.r.Context(), weight, ratelimit.Subject{ID: p.Subject(), Limit: p.RateLimit},
		ratelimit.Subject{ID: p.OrganizationSubject(), Limit: x.cfg.OrganizationLimit})
	if err != nil {
		return fmt.Errorf("admit %s: %w", p.Subject(), err)
	}
	h := x.w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(d.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(d.Remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(d.Reset.Unix(), 10))
	if d.Allowed {
		x.admitted = p.Subject()
		x.weight += weight
		return nil
	}
	x.admitted = ""
	f := fault.New(fault.RateLimited, "rate_limited", "more than %d requests in 60 s; wait as Retry-After says", d.Limit)
	f.RetryAfter = max(d.RetryAfter, time.Second)
	return f
}

// readSite reads the site that a request asks for by header, query or both,
// and refuses one that the credential does not cover. Anything else that is
// wrong with it is for the check of parameters, which comes later.
func (x *exchange) readSite(p *auth.Principal) error {
	type param struct{ in, name, text string }
	var given []param
	for _, text := range x.r.Header.Values(siteHeader) {
		given = append(given, param{fault.InHeader, siteHeader, text})
	}
	if text := x.r.URL.Query().Get(siteQuery); text != "" { // an empty one is refused with the query
		given = append(given, param{fault.InQuery, siteQuery, text})
	}
	for _, g := range given {
		id, err := value.ParseID(g.text)
		switch {
		case err == nil && !p.MaySeeSite(id):
			return fault.New(fault.Forbidden, "site_forbidden", "the credential does not cover site %s", id)
		case x.siteErr != nil:
		case err != nil:
			x.siteErr = fault.Field(g.in, g.name, fault.DetailFormat, "%s", err.Error())
		case x.site != nil && *x.site != id:
			x.siteErr = fault.Field(g.in, g.name, fault.DetailNotAllowed, "must be the site that is given before; send one of them")
		default:
			x.site = &id
		}
	}
	return nil
}

// content makes the checks of size and type and returns the body.
func (x *exchange) content() ([]byte, error) {
	body, err := x.readBody()
	if err != nil {
		return nil, err
	}
	return body, x.chooseMediaType()
}

// request makes the checks of parameters.
func (x *exchange) request(body []byte, lock *idempotency.Lock) (*Request, error) {
	ids, texts, err := x.op.splitPath(x.rawPath)
	if err != nil {
		return nil, err
	}
	query, err := x.query()
	if err != nil {
		return nil, err
	}
	req := &Request{
		Principal: x.caller.Principal, Query: query, Header: x.r.Header, Body: body,
		MediaType: x.mediaType, BaseURL: x.caller.BaseURL, RequestID: x.caller.RequestID, ctx: x.r.Context(), x: x, op: x.op, lock: lock, ids: ids, texts: texts,
	}
	if x.op.Sited() {
		if x.siteErr != nil {
			return nil, x.siteErr
		}
		req.Site = x.site
	}
	if req.arguments, err = x.op.arguments(query); err != nil {
		return nil, err
	}
	if x.op.List != nil {
		req.List, err = x.op.List.Parse(query)
	}
	return req, err
}

func (x *exchange) readBody() ([]byte, error) {
	if x.r.Method == http.MethodGet || x.r.Method == http.MethodHead || x.r.Body == nil {
		return nil, nil
	}
	most := cmp.Or(x.op.MostBody, MaxBody)
	body, err := io.ReadAll(io.LimitReader(x.r.Body, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if len(body) > most {
		return nil, fault.New(fault.TooLarge, "payload_too_large", "the body must be at most %d bytes", most)
	}
	if x.op.Foreign {
		return body, nil
	}
	if len(body) > 0 || x.op.Body != nil && !x.op.EmptyBody {
		if err := checkContentType(x.r.Header, x.op.bodyType()); err != nil {
			return nil, err
		}
	}
	if x.op.Body == nil && len(body) > 0 {
		return nil, strictjson.Unmarshal(body, &struct{}{})
	}
	return body, nil
}

func checkContentType(header http.Header, want string) error {
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return fault.New(fault.UnsupportedMedia, "unsupported_media_type", "send the body without Content-Encoding: it is not decompressed")
	}
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || mediaType != want || charset != "" && charset != "utf-8" {
		return fault.New(fault.UnsupportedMedia, "unsupported_media_type", "send the body with Content-Type: %s", want)
	}
	return nil
}

// chooseMediaType takes, of what the operation can answer, what Accept prefers, and
// JSON among equals. It refuses only a request whose Accept excludes all.
func (x *exchange) chooseMediaType() error {
	if x.mediaType = x.op.MediaType; x.mediaType != "" {
		return nil
	}
	x.mediaType = JSON
	given := x.r.Header.Values("Accept")
	if strings.TrimSpace(strings.Join(given, "")) == "" {
		return nil
	}
	best := quality(given, "*/*", "application/*", JSON)
	offered, hint := JSON, ""
	switch {
	case best == 1 || !x.op.Rows:
	case x.op.List == nil || x.op.List.Walks(x.r.URL.Query()):
		offered += ", " + NDJSON + " and " + CSV
		for _, offer := range []string{NDJSON, CSV} {
			group, _, _ := strings.Cut(offer, "/")
			if q := quality(given, "*/*", group+"/*", offer); q > best {
				x.mediaType, best = offer, q
			}
		}
	default:
		hint = ", or add orderBy=id, which walks the list, for " + NDJSON + " or " + CSV
	}
	if best == 0 {
		return fault.New(fault.NotAcceptable, "not_acceptable", "answers are %s; Accept must allow it%s", offered, hint)
	}
	return nil
}

// quality is the q with which the headers, Accept or one like it, take something by
// one of its names: that of the last name which they have; 0 excludes it (RFC
// 9110, section 12.5).
func quality(headers []string, names ...string) (q float64) {
	best := 0
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		rank := slices.Index(names, name)
		if err != nil || rank < best {
			continue
		}
		best, q = rank, 1
		if text := params["q"]; text != "" {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				q = 0
			}
		}
	}
	return q
}

// query refuses parameters that the operation does not take, those given twice
// or empty, and values that are not text. Only search may be empty: it then searches for
// nothing. One that takes several values may be repeated, which equals
// commas. The gateway has decoded the query, invalid escapes included.
func (x *exchange) query() (url.Values, error) {
	values := x.r.URL.Query()
	if x.op.AnyQuery {
		return values, nil
	}
	var details fault.Details
	for name, given := range values {
		switch p := x.op.param(fault.InQuery, name); {
		case p == nil:
			details.Add(fault.InQuery, name, fault.DetailUnknown, "is not a parameter of this operation")
		case len(given) > 1 && p.Multi:
			values[name] = []string{strings.Join(given, ",")}
		case len(given) > 1 && !p.Keyed:
			details.Add(fault.InQuery, name, fault.DetailDuplicate, "must be given once")
		case given[0] == "" && name != "search":
			details.Add(fault.InQuery, name, fault.DetailFormat, "must not be empty; leave the parameter out instead")
		case slices.ContainsFunc(given, isNotText):
			details.Add(fault.InQuery, name, fault.DetailFormat, "must be UTF-8 without control characters")
		}
	}
	details.Sort()
	if err := details.Err(); err != nil {
		return nil, err
	}
	return values, nil
}

// isNotText reports whether a text has control characters other than white
// space, or was not UTF-8: the gateway has replaced the bytes that were not.
func isNotText(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r)
	})
}
