package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// Told is an error that is in words for the author of a handler already.
type Told struct {
	Text string
	Code string // by which programs for Node know it, like ECONNREFUSED; "" = there is none
}

// Error is its words.
func (t Told) Error() string { return t.Text }

// Tell says in words for the author of a handler why a connection to a server, HOST:PORT, failed or broke off.
func Tell(err error, server string) Told {
	if told, ok := errors.AsType[Told](err); ok {
		return told
	}
	return Told{inWords(err, server, false).Error(), codeOf(err)}
}

// codeOf returns the code that Node has for an error of a connection; "" = it is another one.
func codeOf(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, errAddress):
		return "EACCES"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "ENOTFOUND"
	case errors.As(err, &dns):
		return "EAI_AGAIN"
	}
	for _, known := range errnos {
		if errors.Is(err, known.errno) {
			return known.code
		}
	}
	if code := codeOfTLS(err); code != "" {
		return code
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded) {
		return "ETIMEDOUT"
	}
	return ""
}

var errnos = [...]struct {
	errno syscall.Errno
	code  string
}{
	{syscall.ECONNREFUSED, "ECONNREFUSED"}, {syscall.ECONNRESET, "ECONNRESET"}, {syscall.EPIPE, "EPIPE"},
	{syscall.ENETUNREACH, "ENETUNREACH"}, {syscall.EHOSTUNREACH, "EHOSTUNREACH"}, {syscall.ETIMEDOUT, "ETIMEDOUT"},
	{syscall.EADDRNOTAVAIL, "EADDRNOTAVAIL"},
}

func codeOfTLS(err error) string {
	var (
		untrusted x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &untrusted) && untrusted.Cert != nil && untrusted.Cert.CheckSignatureFrom(untrusted.Cert) == nil:
		return "DEPTH_ZERO_SELF_SIGNED_CERT"
	case errors.As(err, &untrusted):
		return "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
	case errors.As(err, &name):
		return "ERR_TLS_CERT_ALTNAME_INVALID"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "CERT_HAS_EXPIRED"
	case errors.As(err, &invalid):
		return "CERT_INVALID"
	case errors.As(err, &record), errors.As(err, &alert), strings.HasPrefix(err.Error(), "tls: "),
		strings.Contains(err.Error(), "remote error: tls: "):
		return "EPROTO"
	}
	return ""
}
