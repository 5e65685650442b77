package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// progress is how far a request came; the transport reports it from
// goroutines of its own.
type progress struct{ phase atomic.Pointer[string] }

func (p *progress) enter(phase string) { p.phase.Store(&phase) }

func (p *progress) String() string {
	if phase := p.phase.Load(); phase != nil {
		return *phase
	}
	return "waiting for a connection"
}

func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { p.enter("resolving the host name") },
		ConnectStart:         func(string, string) { p.enter("connecting") },
		TLSHandshakeStart:    func() { p.enter("waiting for the TLS handshake") },
		GotConn:              func(httptrace.GotConnInfo) { p.enter("sending the request") },
		WroteRequest:         func(httptrace.WroteRequestInfo) { p.enter("waiting for headers") },
		GotFirstResponseByte: func() { p.enter("reading the headers") },
	})
}

// explain turns the transport's error into an outcome. The reason is for the
// target's owner, so that it never carries the text of an unknown error.
func explain(ctx context.Context, err error, phase *progress, timeout time.Duration) Outcome {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err // a URL may hold a secret of its owner
	}
	var forbidden *forbiddenAddress
	switch {
	case errors.As(err, &forbidden):
		return Outcome{
			Kind: Forbidden, Err: err,
			Reason: fmt.Sprintf("the host resolves to %s, which is %s and may not be asked", forbidden.address, article(forbidden.class)),
		}
	case ctx.Err() != nil:
		return Outcome{Kind: Ours, Reason: "the attempt was cut short on our side", Err: err}
	case isOurs(err):
		return Outcome{Kind: Ours, Reason: "we could not open a connection", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return Outcome{Kind: Failed, Reason: fmt.Sprintf("timed out after %s %s", seconds(timeout), phase), Err: err}
	}
	return Outcome{Kind: Failed, Reason: reason(err, phase), Err: err}
}

func article(class string) string {
	for _, adjective := range []string{"private", "reserved", "link-local", "unspecified", "unique local", "unassigned", "discard-only"} {
		if class == adjective {
			return class
		}
	}
	if strings.HasPrefix(class, "outside") || strings.HasPrefix(class, "scoped") {
		return class
	}
	return "a " + class + " address"
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Seconds())
}

// isOurs tells the failures of this host from those of the receiver.
func isOurs(err error) bool {
	for _, code := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func reason(err error, phase *progress) string {
	if text := resolveReason(err); text != "" {
		return text
	}
	if text := certificateReason(err); text != "" {
		return text
	}
	if text := connectionReason(err); text != "" {
		return text
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "server response headers exceeded"):
		return fmt.Sprintf("the response headers exceed %d KiB", maxHeader>>10)
	case strings.Contains(text, "malformed HTTP"):
		return "the receiver did not answer in HTTP"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the receiver does not speak TLS on this port"
	}
	return "the request failed " + phase.String()
}

func resolveReason(err error) string {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return ""
	}
	if dns.IsNotFound {
		return "the host name does not exist"
	}
	return "the host name could not be resolved"
}

func certificateReason(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "TLS certificate " + validity(invalid)
	case errors.As(err, &invalid):
		return "TLS certificate is not valid for this use"
	case errors.As(err, &host):
		return "TLS certificate is for another host name"
	case errors.As(err, &authority):
		return "TLS certificate is signed by an unknown authority"
	case errors.As(err, &record):
		return "the receiver does not speak TLS on this port"
	case errors.As(err, &op) && op.Op == "remote error": // an alert
		return "the receiver refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	case strings.Contains(err.Error(), "tls: "):
		return "the TLS handshake failed; TLS 1.2 or later is required"
	}
	return ""
}

// validity tells which end of a certificate's time was missed: x509 calls
// both expired and tells them apart in the detail only.
func validity(err x509.CertificateInvalidError) string {
	if strings.Contains(err.Detail, "is before") {
		return "is not valid before " + err.Cert.NotBefore.UTC().Format(time.DateOnly)
	}
	return "expired on " + err.Cert.NotAfter.UTC().Format(time.DateOnly)
}

func connectionReason(err error) string {
	for code, text := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "connection refused",
		syscall.ECONNRESET:   "connection reset by the receiver",
		syscall.EPIPE:        "connection closed by the receiver",
		syscall.EHOSTUNREACH: "no route to the host",
		syscall.ENETUNREACH:  "no route to the network",
		syscall.ETIMEDOUT:    "connection timed out",
	} {
		if errors.Is(err, code) {
			return text
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed by the receiver before it answered"
	}
	return ""
}
