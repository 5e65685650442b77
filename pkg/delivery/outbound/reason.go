package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// explain turns the transport's error into an outcome. The reason is for the
// target's owner: it is made of our own words, never of an error's text,
// which shows our internals and may hold a stranger's text.
func (c *Client) explain(ctx context.Context, err error, a *attempt, timeout time.Duration) Outcome {
	var refused *forbidden
	switch {
	case errors.As(err, &refused):
		return Outcome{Kind: Forbidden, Reason: refused.reason, Err: err}
	case ctx.Err() != nil:
		return Outcome{Kind: Ours, Reason: "the attempt was cut short on our side", Err: err}
	case isOurs(err):
		return Outcome{Kind: Ours, Reason: "we could not open a connection", Err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Outcome{Kind: Failed, Reason: fmt.Sprintf("timed out after %g s %s", timeout.Seconds(), a.at()), Err: err}
	}
	return Outcome{Kind: Failed, Reason: c.reason(err, a.at()), Err: err}
}

// isOurs distinguishes failures of this host from the receiver's. Nothing
// that a receiver or its name servers do may look like ours: such a failure
// is tried again without counting as an attempt.
func isOurs(err error) bool {
	local := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EACCES, syscall.EPERM}
	if slices.ContainsFunc(local, func(code syscall.Errno) bool { return errors.Is(err, code) }) {
		return true
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return !lacksIPv6(err) // out of local ports
	}
	var dns *net.DNSError
	if !errors.As(err, &dns) || dns.IsNotFound {
		return false
	}
	// The resolver's socket; net keeps only the text of these errors.
	local = append(local, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH)
	return slices.ContainsFunc(local, func(code syscall.Errno) bool { return strings.HasSuffix(dns.Err, code.Error()) })
}

func (c *Client) reason(err error, at phase) string {
	if text := cmp.Or(resolveReason(err), c.certificateReason(err), tlsReason(err), connectionReason(err, at)); text != "" {
		return text
	}
	if strings.Contains(err.Error(), "server response headers exceeded") {
		return fmt.Sprintf("the response headers exceed %d KiB", maxHeader>>10)
	}
	switch at {
	case handshaking:
		return "the TLS handshake failed"
	case waiting, reading:
		return "the receiver did not answer in valid HTTP"
	}
	return "the request failed " + at.String()
}

func resolveReason(err error) string {
	var dns *net.DNSError
	switch {
	case !errors.As(err, &dns):
		return ""
	case dns.IsNotFound:
		return "the name does not resolve"
	case dns.IsTimeout:
		return "the name could not be resolved: its name servers did not answer in time"
	}
	return "the name could not be resolved: its name servers answered with an error"
}

func connectionReason(err error, at phase) string {
	if lacksIPv6(err) {
		return "the name has only IPv6 addresses, which cannot be reached from here"
	}
	for code, text := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "connection refused",
		syscall.EHOSTUNREACH: "no route to the host",
		syscall.ENETUNREACH:  "no route to the network",
		syscall.ETIMEDOUT:    "the host did not answer in time",
	} {
		if errors.Is(err, code) {
			return text
		}
	}
	when := map[phase]string{
		handshaking: " during the TLS handshake",
		sending:     " before it had the whole request",
		waiting:     " before it answered",
		reading:     " within the headers",
	}[at]
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset by the receiver" + when
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		strings.Contains(err.Error(), "server closed idle connection"):
		return "connection closed by the receiver" + when
	}
	return ""
}

// tlsReason says why a handshake failed, or "".
func tlsReason(err error) string {
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &record):
		return "the receiver does not speak TLS on this port"
	case errors.As(err, &op) && op.Op == "remote error":
		// An alert (RFC 8446, 6.2), which crypto/tls names.
		return "the receiver refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	case strings.Contains(err.Error(), "unsupported protocol version"):
		return "the receiver does not offer TLS 1.2 or later"
	case strings.Contains(err.Error(), "tls: "):
		return "the TLS handshake failed"
	}
	return ""
}

func (c *Client) certificateReason(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var check *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// x509 calls both ends of a certificate's time expired.
		if c.now().Before(invalid.Cert.NotBefore) {
			return "TLS certificate is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.DateOnly)
		}
		return "TLS certificate expired on " + invalid.Cert.NotAfter.UTC().Format(time.DateOnly)
	case errors.As(err, &host):
		return "TLS certificate is not for " + host.Host
	case errors.As(err, &authority) && bytes.Equal(authority.Cert.RawIssuer, authority.Cert.RawSubject):
		return "TLS certificate is self-signed"
	case errors.As(err, &authority):
		return "TLS certificate is not signed by a trusted authority, or an intermediate certificate is missing"
	case errors.As(err, &invalid), errors.As(err, &check):
		return "TLS certificate is not valid for this use"
	}
	return ""
}
