package outbound

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"
)

// tlsReason tells why a handshake failed, or nothing.
func (c *Client) tlsReason(err error) string {
	if text := c.certificateReason(err); text != "" {
		return text
	}
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &record):
		return "the receiver does not speak TLS on this port"
	case errors.As(err, &op) && op.Op == "remote error":
		return "the receiver refused the TLS handshake" + alertReason(op.Err)
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

// alertReason puts an alert (RFC 8446, 6.2) into words. The type that carries
// its number is not exported, so that the text finds it.
func alertReason(err error) string {
	for number, words := range map[tls.AlertError]string{
		40:  "nothing that both sides support",
		42:  "it does not accept our certificate",
		48:  "it does not know our certificate's authority",
		49:  "access denied",
		70:  "it does not offer TLS 1.2 or later",
		71:  "it asks for more security",
		80:  "an internal error of the receiver",
		112: "it does not know this host name",
		116: "it asks for a client certificate",
		120: "no common application protocol",
	} {
		if err.Error() == number.Error() {
			return ": " + words
		}
	}
	return ""
}
