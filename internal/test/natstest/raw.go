package natstest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Raw is a message with a header block that no client library would make. Header is the whole block as it is sent over
// the wire.
type Raw struct{ Subject, Header, Body string }

// PublishRaw publishes a message with a header block that no client library would make, and waits until its stream has
// answered. header is the whole block as it is sent over the wire.
func PublishRaw(t testing.TB, address, subject, header, body string) {
	t.Helper()
	RequestRaw(t, address, Raw{subject, header, body})
}

// RequestRaw publishes a message and returns the answer: its header block, and its body. The address may have a user
// and a password, whose inboxes begin with _INBOX.
func RequestRaw(t testing.TB, address string, m Raw) (header, body string) {
	t.Helper()
	conn, lines := dialRaw(t, address)
	inbox := nats.NewInbox()
	_, err := fmt.Fprintf(conn, "SUB %s 1\r\n%s", inbox, m.publish(inbox))
	require.NoError(t, err)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "no answer")
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "MSG" && f[0] != "HMSG" {
			continue
		}
		var head, all int
		if _, err = fmt.Sscan(f[len(f)-1], &all); err == nil && f[0] == "HMSG" {
			_, err = fmt.Sscan(f[len(f)-2], &head)
		}
		require.NoError(t, err, line)
		answer := make([]byte, all)
		_, err = io.ReadFull(lines, answer)
		require.NoError(t, err)
		return string(answer[:head]), string(answer[head:])
	}
}

// PublishAllRaw publishes messages, and waits until the server has them. It does not wait for streams.
func PublishAllRaw(t testing.TB, address string, list []Raw) {
	t.Helper()
	conn, lines := dialRaw(t, address)
	out := bufio.NewWriter(conn)
	for _, m := range list {
		_, err := out.WriteString(m.publish(""))
		require.NoError(t, err)
	}
	_, err := out.WriteString("PING\r\n")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "no PONG")
		require.False(t, strings.HasPrefix(line, "-ERR"), line)
		if strings.HasPrefix(line, "PONG") {
			return
		}
	}
}

// publish is the protocol's text that publishes m.
func (m Raw) publish(reply string) string {
	return fmt.Sprintf("HPUB %s %s %d %d\r\n%s%s\r\n", m.Subject, reply, len(m.Header), len(m.Header)+len(m.Body),
		m.Header, m.Body)
}

// dialRaw opens a connection that ends with the test.
func dialRaw(t testing.TB, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	password, _ := u.User.Password()
	_, err = fmt.Fprintf(conn, "CONNECT {\"headers\":true,\"verbose\":false,\"user\":%q,\"pass\":%q}\r\n", u.User.Username(), password)
	require.NoError(t, err)
	return conn, bufio.NewReader(conn)
}
