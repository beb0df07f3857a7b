package egress

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// The error texts of Go's libraries are for Go programmers. The author of a handler gets the same fact in the terms of
// the web. Facts about the fleet itself, like its resolver, are left out.

// server returns host and port of a URL.
func server(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" || u.Scheme == "wss" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// inWords returns the reason why an exchange with a server failed. reading is true if the head of the response had
// arrived.
func inWords(err error, server string, reading bool) error {
	if told, ok := errors.AsType[Told](err); ok {
		return told
	}
	for _, words := range [...]func(error, string) string{ofAddress, ofName, ofConnecting, ofTLS, ofHTTP} {
		if text := words(err, server); text != "" {
			return errors.New(text)
		}
	}
	var corrupt flate.CorruptInputError
	if coding, ok := errors.AsType[notCoded](err); ok {
		return fmt.Errorf("the body of the response from %s is not the %s that it is said to be", server, string(coding))
	}
	switch {
	case reading && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)):
		return fmt.Errorf("the body of the response from %s is not the gzip that it is said to be", server)
	case reading:
		return fmt.Errorf("%s ended the response before it was complete", server)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s closed the connection without a response", server)
	}
	return fmt.Errorf("the exchange with %s broke off", server)
}

func ofAddress(err error, _ string) string {
	if !errors.Is(err, errAddress) {
		return ""
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		return fmt.Sprintf("%s: %v", op.Addr, op.Err)
	}
	return err.Error()
}

func ofName(err error, _ string) string {
	var dns *net.DNSError
	switch {
	case !errors.As(err, &dns):
		return ""
	case dns.IsNotFound:
		return fmt.Sprintf("no such host: %.253s", dns.Name)
	case dns.IsTimeout:
		return fmt.Sprintf("the name %.253s was not resolved in time", dns.Name)
	}
	return fmt.Sprintf("the name %.253s could not be resolved", dns.Name)
}

func ofConnecting(err error, server string) string {
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch {
	case errors.Is(err, context.Canceled):
		return "it was given up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused by " + server
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return "connection reset by " + server
	case errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH):
		return server + " cannot be reached"
	case dialing && op.Timeout():
		return "no connection to " + server + " in time"
	case dialing:
		return "no connection to " + server
	}
	return ""
}

func ofTLS(err error, server string) string {
	var (
		untrusted x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		any       *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &untrusted):
		return "the certificate of " + server + " is not from an authority that is trusted"
	case errors.As(err, &name):
		return "the certificate of " + server + " is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of " + server + " has expired or is not valid yet"
	case errors.As(err, &invalid) || errors.As(err, &any):
		return "the certificate of " + server + " is not valid"
	case errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return server + " does not speak TLS"
	case errors.As(err, &alert) || strings.HasPrefix(err.Error(), "tls: ") ||
		strings.Contains(err.Error(), "remote error: tls: "):
		return "no TLS with " + server + " came about"
	}
	return ""
}

// ofHTTP recognises errors of net/http by their text: they have no types.
func ofHTTP(err error, server string) string {
	var timeout net.Error
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid header field"):
		return "a header of the request has a character that none may have"
	case strings.Contains(text, "TLS handshake timeout"):
		return "no TLS with " + server + " came about in time"
	case strings.Contains(text, "response headers exceeded"):
		return fmt.Sprintf("the head of the response from %s has more than %d bytes", server, MaxResponseHead)
	case strings.Contains(text, "malformed") || strings.Contains(text, "bad Content-Length") ||
		strings.Contains(text, "invalid Content-Length") ||
		strings.Contains(text, "multiple Content-Length") || strings.Contains(text, "unsupported transfer encoding") ||
		strings.Contains(text, "too many transfer encodings") ||
		strings.Contains(text, "chunk"):
		return "the response from " + server + " is not well-formed HTTP"
	case errors.As(err, &timeout) && timeout.Timeout():
		return server + " did not answer in time"
	}
	return ""
}
