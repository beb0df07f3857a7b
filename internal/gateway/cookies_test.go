package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestSetCookieOfFiles(t *testing.T) {
	t.Parallel()
	h := http.Header{"Set-Cookie": {"a=1", "pinwheel_console=x", "=pinwheel_notice=x"}}
	dropFleetCookies(h)
	require.Equal(t, []string{"a=1"}, h["Set-Cookie"])
}

// A worker neither sees nor sets the cookies of the console, which browsers send to all ports of a host.
func TestCookiesOfTheConsole(t *testing.T) {
	t.Parallel()
	var got []string
	_, addr := open(t, Config{Domain: "test"}, func(e *events.Event) *events.Reply {
		got = nil
		for i := 0; i < len(e.HTTPHeaders); i += 2 {
			if e.HTTPHeaders[i] == "Cookie" {
				got = append(got, e.HTTPHeaders[i+1])
			}
		}
		return &events.Reply{Status: 200, Headers: []string{
			"set-cookie", "a=1", "Set-Cookie", "pinwheel_console=x; Path=/", "SET-COOKIE", " =pinwheel_notice=x", "Set-Cookie", "\tpinwheel_x", "set-cookie", "b=pinwheel_console",
		}}
	})
	for cookie, want := range map[string][]string{
		"a=1; b=2":                                  {"a=1; b=2"},
		"a=1; pinwheel_console=secret; b=2":         {"a=1; b=2"},
		"pinwheel_console=secret":                   nil,
		"pinwheel_console=secret;pinwheel_notice=x": nil,
		"a=pinwheel_console=1":                      {"a=pinwheel_console=1"},
		`a="x;pinwheel_console=secret"`:             {`a="x`},
		"\tpinwheel_console=secret;a=1":             {"a=1"},
		strings.Repeat("=", 9) + "pinwheel_console": nil,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
		require.NoError(t, err)
		r.Host = "w--acme.test"
		r.Header.Set("Cookie", cookie)
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_ = a.Body.Close()
		require.Equal(t, want, got, cookie)
		require.Equal(t, []string{"a=1", "b=pinwheel_console"}, a.Header["Set-Cookie"])
	}
}
