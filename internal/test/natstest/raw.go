package natstest

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// PublishRaw publishes a message with a header block that no client library would make, and waits until its stream has
// answered. header is the whole block as it is sent over the wire.
func PublishRaw(t testing.TB, address, subject, header, body string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	inbox := nats.NewInbox()
	_, err = fmt.Fprintf(conn, "CONNECT {\"headers\":true,\"verbose\":false}\r\nSUB %s 1\r\nHPUB %s %s %d %d\r\n%s%s\r\n",
		inbox, subject, inbox, len(header), len(header)+len(body), header, body)
	require.NoError(t, err)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "MSG "+inbox) {
			return
		}
	}
	t.Fatal("the stream did not answer")
}
