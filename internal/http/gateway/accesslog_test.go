package gateway

import (
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// written keeps what is written, a line each.
type written struct {
	mu    sync.Mutex
	lines []string
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, string(p))
	return len(p), nil
}

func (w *written) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

// fields returns the names of a JSON object, in order.
func fields(t *testing.T, line string) (names []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	_, err := d.Token()
	require.NoError(t, err, line)
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err, line)
		var value any
		require.NoError(t, d.Decode(&value), line)
		names = append(names, name.(string))
	}
	_, err = d.Token()
	require.NoError(t, err, line)
	return names
}

// Whatever clients send, a request is one line of bounded size in the operator's log, and the fields are the gateway's,
// in JSON and in the text for people.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	var s seen
	var asJSON, asText written
	_, addr := open(t, Config{Domain: "w.test", Log: true, Trust: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		s.handle, func(g *Gateway) {
			g.log = zerolog.New(zerolog.MultiLevelWriter(&asJSON, zerolog.ConsoleWriter{Out: &asText, NoColor: true}))
		})
	const host = "Host: hello--acme.w.test\r\n"
	const forged = `","status":200,"owner":"beta","x":"`
	run := []string{"level", "method", "host", "path", "status", "in", "out", "duration", "owner", "worker", "version",
		"event", "client", "message"}
	refused := []string{"level", "method", "host", "path", "status", "in", "out", "duration", "client", "message"}
	for _, c := range []struct {
		request string
		want    []string // fields; nil = the request gets no line, as it is not valid
	}{
		{"GET /%0d%0a%7B%22level%22:%22info%22%7D HTTP/1.1\r\n" + host, run},
		{"GET /" + forged + " HTTP/1.1\r\n" + host, run},
		{"GET /\\n\\u000a\\ HTTP/1.1\r\n" + host, run},
		{"GET /\xff\xfe\xe2\x80\xa8\xc2\x85 HTTP/1.1\r\n" + host, run}, // no UTF-8, and line ends of Unicode
		{"GET /a?status=200&owner=beta HTTP/1.1\r\n" + host, run},
		{"GET /a\x1b[2J HTTP/1.1\r\n" + host, nil},
		{"GET /a\tstatus=200 HTTP/1.1\r\n" + host, nil},
		{"GET /a status=200 HTTP/1.1\r\n" + host, nil},
		{"GET /a\rb HTTP/1.1\r\n" + host, nil},
		{"GET / HTTP/1.1\r\nHost: a" + forged + ".w.test\r\n", nil},
		{"GET / HTTP/1.1\r\nHost: hello--acme.w.test;status=200\r\n", refused},
		{"GET / HTTP/1.1\r\nHost: " + strings.Repeat("h", 50_000) + "\r\n", refused},
		{"GET /" + strings.Repeat("p", 50_000) + " HTTP/1.1\r\n" + host, run},
		{strings.Repeat("M", 50_000) + " / HTTP/1.1\r\n" + host, run},
		{"A!#$%&'*+-.^_`|~ / HTTP/1.1\r\n" + host, run},
		{"GET / HTTP/1.1\r\n" + host + "X-Forwarded-For: " + forged + "\r\nX-Forwarded-Proto: " + forged +
			"\r\nUser-Agent: " + forged + "\r\n", run},
		{"GET / HTTP/1.1\r\n" + host + "X-Forwarded-For: 192.0.2.1\tstatus=200, fe80::1%" + forged + "\r\n", run},
		{"GET / HTTP/1.1\r\n" + host + "Event-Id: " + forged + "\r\nVersion-Key: " + forged + "\r\n", run},
	} {
		list := raw(t, addr, c.request+"Connection: close\r\n\r\n", 2) // until the connection ends: the line comes before
		require.Len(t, list, 1)
		lines, texts := asJSON.take(), asText.take()
		if c.want == nil {
			require.Equal(t, 400, list[0].StatusCode, "%.200q", c.request)
			require.Empty(t, lines)
			continue
		}
		require.Len(t, lines, 1, "%.200q", c.request)
		require.Equal(t, c.want, fields(t, lines[0]), "%.200q", c.request)
		require.Len(t, texts, 1)
		for _, line := range []string{lines[0], texts[0]} {
			require.Equal(t, strings.Index(line, "\n"), len(line)-1, "%q", line)
			require.Less(t, len(line), 4<<10)
			require.Equal(t, -1,
				strings.IndexFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' || r >= 0x7f && r != '…' }), "%q", line)
		}
		var doc struct {
			Status int
			Owner  string
		}
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &doc))
		require.Equal(t, list[0].StatusCode, doc.Status)
		require.NotEqual(t, "beta", doc.Owner)
		require.NotContains(t, texts[0], " owner=beta")
		require.LessOrEqual(t, strings.Count(texts[0], " status="), 1, "%q", texts[0])
	}
}
