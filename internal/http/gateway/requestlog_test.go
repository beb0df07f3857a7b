package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// output collects lines.
type output struct {
	mu    sync.Mutex
	lines []events.LogLine
}

func (o *output) Log(l events.LogLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, l)
}

// await returns n lines: a line comes after its response.
func (o *output) await(t *testing.T, n int) (lines []events.LogLine) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		lines = o.lines
		return len(lines) >= n
	}, patience, time.Millisecond)
	require.Len(t, lines, n)
	o.lines = nil
	return lines
}

func TestRequestLog(t *testing.T) {
	out := &output{}
	answer := func(e *lifecycle.Delivery) *events.Reply {
		if strings.HasSuffix(e.URL, "/breaks") {
			s := &events.Stream{Grant: func(int64) {}, Cancel: func(string) {}}
			s.Push(events.Chunk{Data: []byte("ab")})
			s.Push(events.Chunk{Failure: events.Fail(events.ReasonCPU, "too long")})
			return &events.Reply{Status: 200, Stream: s}
		}
		status := 200
		if strings.HasSuffix(e.URL, "/broken") {
			status = 500
		}
		return &events.Reply{Status: status, Headers: []string{"content-type", "text/plain", "set-cookie", "id=secret"},
			Body: append([]byte("got "), e.Body...), Version: "1-aaaaaaaaaaaa"}
	}
	var h *backend
	var access written
	_, addr := open(t, domain, answer, func(g *Gateway) {
		h = &backend{}
		h.in(g)
		g.lines = newRequestLog(out)
		g.log = zerolog.New(&access)
	})
	send := func(log *workers.RequestLog, path, body string) {
		h.only(version(1, &workers.HTTP{Log: log}))
		raw(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop--acme.w.test\r\nCookie: id=secret\r\nX-Token: secret\r\nX-Note: hi\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, len(body), body), 1)
	}
	send(&workers.RequestLog{}, "/a?key=secret", "hello")
	line := out.await(t, 1)[0]
	require.Regexp(t, `^POST /a 200 in [0-9.]+.?s, 5 bytes in, 9 out, client 127\.0\.0\.1$`, line.Text, "no query, headers or bodies")
	require.Equal(t, []string{"acme", "shop", "1-aaaaaaaaaaaa", "info"}, []string{line.Owner, line.Worker, line.Version,
		line.Level})
	require.NotEmpty(t, line.EventID)

	send(&workers.RequestLog{Level: workers.RequestsFull, RequestBody: true, ResponseBody: true}, "/a?key=value", "hello")
	line = out.await(t, 1)[0]
	require.Contains(t, line.Text, "POST /a?key=value 200 in ")
	for _, part := range []string{"\n  request header X-Note: hi", "\n  request header Cookie: (not logged)",
		"\n  response header Content-Type: text/plain",
		"\n  response header Set-Cookie: (not logged)", "\n  request body: hello", "\n  response body: got hello"} {
		require.Contains(t, line.Text, part)
	}
	require.NotContains(t, line.Text, "secret")

	long := strings.Repeat("é", maxLoggedBody) // the cut is in the middle of a character
	send(&workers.RequestLog{RequestBody: true}, "/a", "x"+long)
	line = out.await(t, 1)[0]
	require.Contains(t, line.Text, fmt.Sprintf("\n  request body: x%s… (%d bytes)", strings.Repeat("é", maxLoggedBody/2-1),
		1+len(long)))
	require.NotContains(t, line.Text, "response body")
	send(&workers.RequestLog{RequestBody: true}, "/a", "\xff\xfe\x00\x01\x02\x03")
	require.Contains(t, out.await(t, 1)[0].Text, "\n  request body: 6 bytes that are no text")

	send(&workers.RequestLog{Level: workers.RequestsMinimal}, "/a", "")
	send(&workers.RequestLog{Level: workers.RequestsNone, RequestBody: true}, "/broken", "x")
	send(nil, "/broken", "")
	send(&workers.RequestLog{Level: workers.RequestsMinimal}, "/broken", "")
	line = out.await(t, 1)[0]
	require.Contains(t, line.Text, "POST /broken 500 in ")
	require.Equal(t, "error", line.Level)

	h.only(version(1, &workers.HTTP{Log: &workers.RequestLog{Level: workers.RequestsMinimal}}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/breaks", http.NoBody)
	require.NoError(t, err)
	r.Host = shop
	answer200, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_, err = io.ReadAll(answer200.Body)
	require.Error(t, err, "the client sees that it is not complete")
	_ = answer200.Body.Close()
	line = out.await(t, 1)[0]
	require.Equal(t, "error", line.Level)
	require.Contains(t, line.Text, "GET /breaks 200 in ")
	require.Contains(t, line.Text, "\n  the body of the response broke off: cpu: too long")
	require.Contains(t, strings.Join(access.take(), ""), `"broken":"cpu"`)

	h.only(version(1, &workers.HTTP{Log: &workers.RequestLog{}}))
	raw(t, addr, strings.Repeat("M", 50_000)+" / HTTP/1.1\r\nHost: shop--acme.w.test\r\nConnection: close\r\n\r\n", 1)
	require.Less(t, len(out.await(t, 1)[0].Text), 1<<10, "a client chooses the method too")
}

// A client chooses the names of headers too.
func TestLoggedHeadersAreBounded(t *testing.T) {
	var b strings.Builder
	writeHeaders(&b, "request", http.Header{strings.Repeat("N", 8000): {strings.Repeat("v", 8000)}})
	require.Equal(t, "\n  request header "+strings.Repeat("N", maxLoggedHeader)+"…: "+strings.Repeat("v", maxLoggedHeader)+
		"…", b.String())
}

func TestRequestLogIsLimited(t *testing.T) {
	l, now := newRequestLog(nil), time.Now()
	for range linesAtOnce {
		_, ok := l.lines.Allow("acme", now)
		require.True(t, ok)
	}
	for range 7 {
		_, ok := l.lines.Allow("acme", now)
		require.False(t, ok)
	}
	_, ok := l.lines.Allow("other", now)
	require.True(t, ok, "owners have a limit each")
	left, ok := l.lines.Allow("acme", now.Add(time.Second))
	require.True(t, ok)
	require.Equal(t, 7, left)
}

// A worker with http.enabled: false has no address, and neither have its former versions.
func TestDisabled(t *testing.T) {
	no, s := false, &seen{}
	var h *backend
	_, addr := open(t, domain, s.handle, func(g *Gateway) { h = &backend{}; h.in(g) })
	ask := func(host string) int {
		return raw(t, addr, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", 1)[0].StatusCode
	}
	one, two := version(1, &workers.HTTP{Previews: true}), version(2, &workers.HTTP{Previews: true, Enabled: &no})
	h.only(one, two)
	for _, host := range []string{shop, h.previewed(t, one), h.previewed(t, two)} { // a former version is no way around it
		require.Equal(t, 404, ask(host))
	}
	require.Empty(t, s.take())
	one, two = version(1, &workers.HTTP{Previews: true, Enabled: &no}), version(2, &workers.HTTP{Previews: true})
	h.only(one, two)
	require.Equal(t, 200, ask(shop))
	require.Equal(t, 404, ask(h.previewed(t, one)))
}

// The limits of owners that want no lines any more are forgotten.
func TestLimitsOfLinesAreForgotten(t *testing.T) {
	t.Parallel()
	l, now := newRequestLog(nil), time.Now()
	for i := range 1000 {
		_, ok := l.lines.Allow(fmt.Sprint("owner", i), now)
		require.True(t, ok)
	}
	for range 2 * linesAtOnce {
		l.lines.Allow("acme", now.Add(time.Minute/2))
	}
	left, ok := l.lines.Allow("acme", now.Add(time.Minute))
	require.True(t, ok)
	require.Equal(t, linesAtOnce, left)
	require.Equal(t, 1, l.lines.Len(), "acme's, whose lines were left out lately")
}
