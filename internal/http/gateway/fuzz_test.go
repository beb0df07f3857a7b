package gateway

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// answers runs events at once.
type answers func(*lifecycle.Delivery)

func (f answers) Submit(batch []*lifecycle.Delivery) {
	for _, e := range batch {
		f(e)
		e.Caller.Reply(&events.Reply{Status: 200})
		e.Caller.End()
	}
}

// FuzzRequest: whatever a client sends, an event is only of a worker with valid names, and has no header that a client
// cannot set.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a--b.w.test\r\n\r\n",
		"POST /dev/x?y HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nEvent-Id: 1\r\nX-Forwarded-For: 1\r\nConnection: a, b\r\n\r\nx",
		"GET http://a--b.w.test/ HTTP/1.1\r\nHost: other\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: 1-h00h0-aaaaaaaaaaaaaaaa--a--b.w.test:80\r\n\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		r.RemoteAddr = "192.0.2.7:1234"
		g := newGateway(t, Config{Domain: "w.test", Paths: "dev"}, answers(func(e *lifecycle.Delivery) {
			require.True(t, events.ValidName(e.Owner) && events.ValidName(e.Worker), "%q", e.Target())
			require.True(t, strings.HasPrefix(e.URL, "http://"), e.URL)
			require.NotContains(t, e.URL, " ")
			for i := 0; i < len(e.HTTPHeaders); i += 2 {
				switch name, value := e.HTTPHeaders[i], e.HTTPHeaders[i+1]; name {
				case headerEventID:
					require.Equal(t, e.ID, value)
				case headerClient, headerConnectingIP, headerForwardedFor:
					require.Equal(t, "192.0.2.7", value)
				case "Connection", "Transfer-Encoding", "Upgrade", "Forwarded":
					t.Errorf("%s: %s", name, value)
				}
			}
		}))
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // it is a value that is thrown
				panic(v)
			}
		}()
		g.ServeHTTP(httptest.NewRecorder(), r)
	})
}
