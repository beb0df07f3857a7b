package natstest

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// PublishRaw publishes a message with a header block that no client library would make. header is the whole block as it
// is sent over the wire.
func PublishRaw(t testing.TB, address, subject, header, body string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "CONNECT {\"headers\":true,\"verbose\":false}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n", subject, len(header), len(header)+len(body), header, body)
	require.NoError(t, err)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PONG" {
			return
		}
	}
	t.Fatal("the server did not take the message")
}
