package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
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
	_, addr := open(t, Config{Domain: "test"}, func(e *lifecycle.Delivery) *events.Reply {
		got = nil
		for i := 0; i < len(e.HTTPHeaders); i += 2 {
			if e.HTTPHeaders[i] == "Cookie" {
				got = append(got, e.HTTPHeaders[i+1])
			}
		}
		return &events.Reply{Status: 200, Headers: []string{
			"set-cookie", "a=1", "Set-Cookie", "pinwheel_console=x; Path=/", "SET-COOKIE", " =pinwheel_notice=x", "Set-Cookie",
			"\tpinwheel_x", "set-cookie", "b=pinwheel_console",
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

// A cookie reaches no host of another owner: a Domain stays only when all that it covers is granted to the worker's.
func TestDomainsOfCookies(t *testing.T) {
	t.Parallel()
	var set []string
	g, addr := open(t, Config{Domain: "w.example", Paths: "dev"}, func(*lifecycle.Delivery) *events.Reply {
		headers := []string{}
		for _, c := range set {
			headers = append(headers, "set-cookie", c)
		}
		return &events.Reply{Status: 200, Headers: headers}
	})
	g.Routes.Install(routed("acme", "shop", "shop.acme.test/*", "www.shared.test/*"))
	g.Routes.SetPolicy("acme", workers.Policy{Hosts: []string{"shop.acme.test", "acme.test", "*.acme.test", "shared.test",
		"www.shared.test"}})
	g.Routes.SetPolicy("beta", workers.Policy{Hosts: []string{"*.beta.shared.test"}})
	answer := func(host string, cookies ...string) []string {
		set = cookies
		_, _, headers := ask(t, addr, "GET", host, "/")
		return headers["Set-Cookie"]
	}
	const worker = "shop--acme.w.example"
	require.Equal(t, []string{
		"a=1; Path=/", "b=2; Secure", "c=3", "d=4; HttpOnly", "e=5;path=/", "f=domain=w.example; Domain=" + worker,
		"Domain=w.example", "g=7", "h=8", "i=9", "pinwheel=1",
	}, answer(worker,
		"a=1; Path=/; Domain=w.example", "b=2; domain = .W.Example ; Secure", "c=3;DOMAIN=example",
		"d=4; HttpOnly;\tDomain=w.example.", "e=5;path=/;domain=W.EXAMPLE",
		"f=domain=w.example; Domain="+worker, "Domain=w.example", "g=7; Domain=w\u00e9.example", "h=8; Domain",
		"i=9; Domain=..example", "__Host-pinwheel_console=x", "pinwheel=1",
	))
	for domain, want := range map[string]string{ // at a host that is granted
		"shop.acme.test": "a=1; Domain=shop.acme.test", "acme.test": "a=1; Domain=acme.test",
		".ACME.test": "a=1; Domain=.ACME.test", "test": "a=1",
	} {
		require.Equal(t, []string{want}, answer("shop.acme.test", "a=1; Domain="+domain), domain)
	}
	require.Equal(t, []string{"a=1"}, answer("www.shared.test", "a=1; Domain=shared.test"), "beta has hosts below it")
	require.Equal(t, []string{"a=1; Domain=www.shared.test"}, answer("www.shared.test", "a=1; Domain=www.shared.test"))
	g.Routes.SetPolicy("beta", workers.Policy{})
	require.Equal(t, []string{"a=1; Domain=shared.test"}, answer("www.shared.test", "a=1; Domain=shared.test"))
	g.Routes.SetPolicy("acme", workers.Policy{})
	require.Empty(t, g.Routes.granted)
}
