package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsOfExchangesAreInPlainWords(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, Err: err}
	}
	for text, err := range map[string]error{
		"connection refused by a:1":                dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"connection reset by a:1":                  &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"a:1 cannot be reached":                    dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"no connection to a:1 in time":             dial(os.ErrDeadlineExceeded),
		"no connection to a:1":                     dial(errors.New("whatever")),
		"10.0.0.1:80: address is not allowed: why": dial(fmt.Errorf("%w: why", errAddress)),
		"no such host: b":                          dial(&net.DNSError{Name: "b", IsNotFound: true, Server: "10.9.9.9:53"}),
		"the name b was not resolved in time":      dial(&net.DNSError{Name: "b", IsTimeout: true}),
		"the name b could not be resolved":         dial(&net.DNSError{Name: "b", Err: "server misbehaving"}),
		"the certificate of a:1 is for another name": &tls.CertificateVerificationError{
			Err: x509.HostnameError{Certificate: &x509.Certificate{}}},
		"the certificate of a:1 has expired or is not valid yet": x509.CertificateInvalidError{Reason: x509.Expired},
		"the certificate of a:1 is not valid":                    x509.CertificateInvalidError{Reason: x509.TooManyIntermediates},
		"a:1 does not speak TLS":                                 tls.RecordHeaderError{},
		"no TLS with a:1 came about":                             tls.AlertError(40),
		"it was given up":                                        context.Canceled,
		"a:1 did not answer in time":                             context.DeadlineExceeded,
		"a:1 closed the connection without a response":           io.EOF,
		"the exchange with a:1 broke off":                        errors.New("http2: whatever"),
	} {
		require.EqualError(t, inWords(err, "a:1", false), text)
	}
	require.EqualError(t, inWords(io.ErrUnexpectedEOF, "a:1", true), "a:1 ended the response before it was complete")
}
