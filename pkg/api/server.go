package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api/failures"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Caller is the caller of a request, as the gateway established it.
type Caller struct {
	Principal auth.Principal
	Err       error // why Principal is absent; nil otherwise
	RequestID string
	BaseURL   string
	// SourceAddress is the client's, as the gateway saw it.
	SourceAddress string
}

// Limiter counts a request against the limits of all its subjects, or of none.
type Limiter interface {
	Admit(ctx context.Context, weight int, of ...ratelimit.Subject) (ratelimit.Decision, error)
	// ClientError counts an admitted request that was answered 4xx.
	ClientError(subject string)
}

// Config configures a server.
type Config struct {
	Caller  func(*http.Request) Caller
	Limiter Limiter
	// OrganizationLimit is the requests per 60 s of an organization; 0:
	// [auth.OrganizationRateLimit].
	OrganizationLimit int
	// Refresh returns the principal as it is now, where the gateway may have
	// established it minutes ago, and without the state of an application; nil:
	// it is current.
	Refresh func(context.Context, auth.Principal) (auth.Principal, *auth.Denial, error)
	// Idempotency keeps the answers to requests that name an idempotency key;
	// nil where no operation takes one.
	Idempotency *idempotency.Keeper
	// Failures gets the failed requests of applications; nil: they are not kept.
	Failures *failures.Log
	Clock    func() time.Time
	Logger   *slog.Logger
}

// Server answers one area's operations. It is safe for concurrent use.
type Server struct {
	router *router
	cfg    Config
}

// NewServer makes the handler of the operations.
func NewServer(operations []Operation, cfg Config) *Server {
	cfg.OrganizationLimit = cmp.Or(cfg.OrganizationLimit, auth.OrganizationRateLimit)
	return &Server{router: newRouter(operations), cfg: cfg}
}

// exchange is one request on its way through the checks.
type exchange struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	caller  Caller
	op      *Operation
	rawPath map[string]string // the parameters of the path, as they were sent
	site    *value.ID         // that the request asks for
	siteErr error             // the fault of the parameters of the site

	mediaType string // of the answer
	status    int
	code      string // of the problem that it is answered with

	admitted string   // the subject whose rate limit admitted it; "": none
	weight   int      // that was admitted
	claimed  *claimed // nil: no credential names an application
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Server: s, w: w, r: r, caller: s.cfg.Caller(r)}
	_ = x.serve()
}

// serve answers the request, logs it, and notes it where it failed. The error is the
// one that it answered.
func (x *exchange) serve() error {
	start := x.cfg.Clock()
	h := x.w.Header()
	h.Set("X-Request-Id", x.caller.RequestID)
	h.Set("X-Content-Type-Options", "nosniff")
	err := x.run()
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.Busy(err)
	}
	if err != nil {
		x.fail(err)
	}
	if x.admitted != "" && x.status >= http.StatusBadRequest && x.status < http.StatusInternalServerError {
		x.cfg.Limiter.ClientError(x.admitted)
	}
	x.noteFailure()
	x.log(err, x.cfg.Clock().Sub(start))
	return err
}

func (x *exchange) run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	op, rawPath, err := x.router.find(x.r.Method, x.r.URL.Path)
	if err != nil {
		return err
	}
	x.op, x.rawPath = op, rawPath
	if op.Deprecated != nil {
		op.Deprecated.announce(x.w.Header())
	}
	if err := x.authorize(); err != nil {
		return err
	}
	body, err := x.content()
	if err != nil {
		return err
	}
	resp, err := x.once(body, func(lock *idempotency.Lock) (*Response, error) {
		req, err := x.request(body, lock)
		if err != nil {
			return nil, err
		}
		return x.op.Handle(req)
	})
	if err != nil {
		return err
	}
	return x.respond(resp)
}

// noteFailure keeps the request for its application where it failed.
func (x *exchange) noteFailure() {
	p := &x.caller.Principal
	if x.cfg.Failures == nil || x.caller.Err != nil || p.ApplicationID.IsZero() {
		return
	}
	var failed *failures.FailedRequest
	if x.status >= http.StatusBadRequest {
		failed = &failures.FailedRequest{
			RequestID: x.caller.RequestID, At: value.TimeOf(x.cfg.Clock()), Method: x.r.Method, Path: x.router.loggable(x.r.URL.Path),
			Query: failures.Names(x.r.URL.Query()), Status: x.status, Code: x.code,
		}
	}
	x.cfg.Failures.Note(x.r.Context(), p.OrganizationID, p.ApplicationID, failed)
}

// log writes the one event of a request. Its id is added by the logger, from
// the invocation.
func (x *exchange) log(err error, took time.Duration) {
	level := slog.LevelInfo
	if err != nil && x.status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if !x.cfg.Logger.Enabled(x.r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", x.r.Method), slog.String("path", x.router.loggable(x.r.URL.Path)), slog.Int("status", x.status),
		slog.Duration("took", took),
	}
	if x.caller.Err == nil {
		attrs = append(attrs, slog.String("organizationId", x.caller.Principal.OrganizationID.String()),
			slog.String("subject", x.caller.Principal.Subject()))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	x.cfg.Logger.LogAttrs(x.r.Context(), level, "request", attrs...)
}

func (x *exchange) fail(err error) {
	problem, header := ProblemOf(err, x.caller.RequestID)
	x.code = problem.Code
	if x.op != nil && x.op.Refuse != nil {
		resp := x.op.Refuse.Answer(err)
		x.auditRefusal(resp.Refused)
		x.code = cmp.Or(resp.Refused, x.code)
		if x.respond(resp) == nil {
			return
		}
	}
	if problem.StatusCode == http.StatusUnauthorized || problem.Code == codeAddressForbidden {
		x.auditRefusal(problem.Code)
	}
	h := x.w.Header()
	maps.Copy(h, header)
	h.Del("ETag")
	h.Set("Cache-Control", x.caching())
	h.Add("Link", "<"+x.caller.BaseURL+"/docs/errors#"+problem.Code+`>; rel="help"`)
	varies(h)
	// A problem repeats names that the client sent, whatever bytes they are. What
	// else it holds are strings and numbers, so that marshalling does not fail.
	body, _ := json.Marshal(problem, jsontext.AllowInvalidUTF8(true))
	if len(body) >= gzipFrom {
		body, _ = x.encode(body) // compressing does not fail
	}
	x.write(problem.StatusCode, body, "application/json")
}
