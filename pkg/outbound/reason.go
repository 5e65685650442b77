package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// explain turns the transport's error into an outcome. The reason is for the
// target's owner: it is made of our own words, never of an error's text,
// which speaks of our internals and may hold what a stranger wrote.
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
		return Outcome{Kind: Failed, Reason: fmt.Sprintf("timed out after %s %s", seconds(timeout), a.at()), Err: err}
	}
	return Outcome{Kind: Failed, Reason: c.reason(err, a.at()), Err: err}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// isOurs tells the failures of this host from those of the receiver. Nothing
// that a receiver or its name servers do may look like ours: such a failure
// is tried again without counting as an attempt.
func isOurs(err error) bool {
	local := []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EACCES, syscall.EPERM,
	}
	for _, code := range local {
		if errors.Is(err, code) {
			return true
		}
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return !lacksIPv6(err) // out of local ports
	}
	var dns *net.DNSError
	if !errors.As(err, &dns) || dns.IsNotFound {
		return false
	}
	// The resolver's socket; net keeps only the text of these errors.
	for _, code := range append(local, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH) {
		if strings.HasSuffix(dns.Err, code.Error()) {
			return true
		}
	}
	return false
}

func (c *Client) reason(err error, at phase) string {
	if text := resolveReason(err); text != "" {
		return text
	}
	if text := c.tlsReason(err); text != "" {
		return text
	}
	if text := connectionReason(err, at); text != "" {
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
