package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestRoutesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]events.Route{
		"shop.acme.example/*":      {Host: "shop.acme.example", Path: "/", Below: true},
		"*.acme.example/api/*":     {Host: "*.acme.example", Path: "/api/", Below: true},
		"a/x%2Fy":                  {Host: "a", Path: "/x%2Fy"},
		"a/":                       {Host: "a", Path: "/"},
		"xn--bcher-kva.example/b*": {Host: "xn--bcher-kva.example", Path: "/b", Below: true},
	} {
		got, err := events.ParseRoute(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for text, want := range map[string]string{
		"": "a route is HOST/PATH", "shop.example": "a route is HOST/PATH", "/x": `host ""`, "https://a/x": `host "https:"`,
		"a:80/x": `host "a:80"`, "A.example/x": `host "A.example"`,
		"*/x": `host "*"`, "a.*.b/x": `host "a.*.b"`, "a..b/x": "host", "-a/x": "host", "a_b/x": "host",
		"a/*/x": "* only at the end", "a/x?y": "its path has", "a/x y": "its path has",
		"a/../x": "no segment", "a/x/%2e": "no segment", "a/%zz": "its path has",
		"a/" + strings.Repeat("x", 1024): "at most 1024 bytes", strings.Repeat("a.", 130) + "b/": "host",
	} {
		_, err := events.ParseRoute(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestHostsAreGranted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grant, host string
		want        bool
	}{
		{"a.test", "a.test", true}, {"a.test", "b.a.test", false}, {"a.test", "*.a.test", false},
		{"*.a.test", "a.test", false}, {"*.a.test", "b.a.test", true},
		{"*.a.test", "c.b.a.test", true}, {"*.a.test", "*.a.test", true}, {"*.a.test", "*.b.a.test", true},
		{"*.b.a.test", "*.a.test", false}, {"*.a.test", "ba.test", false},
		{"*", "x", true}, {"*", "*.x", true}, {"a.test", "aatest", false},
	} {
		require.Equal(t, c.want, events.Policy{Hosts: []string{"other", c.grant}}.GrantsHost(c.host), "%+v", c)
	}
	require.False(t, events.Policy{}.GrantsHost("a.test"))
	require.NoError(t, events.Policy{Hosts: []string{"*", "*.a.test", "b"}}.Validate())
	require.ErrorContains(t, events.Policy{Hosts: []string{"a", "b/c"}}.Validate(), `hosts[1]: host "b/c"`)
	require.ErrorContains(t, events.Policy{Hosts: make([]string, 1001)}.Validate(), "hosts has 1001: at most 1000")
	err := events.Policy{Hosts: []string{"a.test"}}.MayRoute(&events.HTTP{Routes: []string{"a.test/*", "b.test/*"}})
	require.EqualError(t, err, "http.routes[1] is b.test/*: the owner may not have host b.test: an operator grants it with 'pinwheel owners set OWNER --hosts b.test'")
	require.NoError(t, events.Policy{}.MayRoute(nil))
}

func TestHTTPOfASpec(t *testing.T) {
	t.Parallel()
	good := events.Spec{Secrets: []string{"TOKEN"}, HTTP: &events.HTTP{
		Routes: []string{"a.test/*"}, Base: "/shop/%20&", Delivery: events.DeliverStored, MaxBody: 10 << 20, Auth: "TOKEN",
		Public: events.PublicPaths{"GET": {"/health", "/a/:id/*"}, "*": {"/*"}},
		CORS:   &events.CORS{Origins: []string{"https://a.test", "http://localhost:8080"}, Credentials: true},
	}}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*events.HTTP){
		`http.delivery is "later": it is one of direct, stored, accepted`:                   func(h *events.HTTP) { h.Delivery = "later" },
		`http.base is "shop": it begins with /`:                                             func(h *events.HTTP) { h.Base = "shop" },
		`http.base is "/": it begins with / and does not end with one`:                      func(h *events.HTTP) { h.Base = "/" },
		`http.base is "/a/": it begins with / and does not end with one`:                    func(h *events.HTTP) { h.Base = "/a/" },
		`http.base is "/a//b": it has no segment that is empty`:                             func(h *events.HTTP) { h.Base = "/a//b" },
		`http.base is "/a/%2E": it has no segment that is empty, . or ..`:                   func(h *events.HTTP) { h.Base = "/a/%2E" },
		`http.base is "/a\"b": it has letters`:                                              func(h *events.HTTP) { h.Base = `/a"b` },
		`http.base is "/*": it has letters`:                                                 func(h *events.HTTP) { h.Base = "/*" },
		`http.maxBody is -1`:                                                                func(h *events.HTTP) { h.MaxBody = -1 },
		`http.auth is "OTHER": it is one of the secrets`:                                    func(h *events.HTTP) { h.Auth = "OTHER" },
		`http.public is for a worker with http.auth`:                                        func(h *events.HTTP) { h.Auth = "" },
		`http.routes[0] is "a.test": a route is HOST/PATH`:                                  func(h *events.HTTP) { h.Routes = []string{"a.test"} },
		`http.routes[1] is "a.test/*", which stands there twice`:                            func(h *events.HTTP) { h.Routes = []string{"a.test/*", "a.test/*"} },
		`http.routes has 101: at most 100 are allowed`:                                      func(h *events.HTTP) { h.Routes = make([]string, 101) },
		`http.public.get is no method`:                                                      func(h *events.HTTP) { h.Public = events.PublicPaths{"get": {"/"}} },
		`http.public.GET[0] is "health": it begins with /`:                                  func(h *events.HTTP) { h.Public = events.PublicPaths{"GET": {"health"}} },
		`http.public.GET[0] is "/a*": * stands at the end, after a /`:                       func(h *events.HTTP) { h.Public = events.PublicPaths{"GET": {"/a*"}} },
		`http.public.GET[0] is "/a/../b": it has no segment . or ..`:                        func(h *events.HTTP) { h.Public = events.PublicPaths{"GET": {"/a/../b"}} },
		`http.public.GET[0] is "/:": segment : is a colon and a name`:                       func(h *events.HTTP) { h.Public = events.PublicPaths{"GET": {"/:"}} },
		`http.public.GET[0] is "/a b": a segment has`:                                       func(h *events.HTTP) { h.Public = events.PublicPaths{"GET": {"/a b"}} },
		`http.cors.origins has 0`:                                                           func(h *events.HTTP) { h.CORS.Origins = nil },
		`http.cors.origins[1] is "*", which stands alone`:                                   func(h *events.HTTP) { h.CORS.Origins = []string{"https://a", "*"} },
		`http.cors.origins[0] is "https://a/": an origin is https://HOST`:                   func(h *events.HTTP) { h.CORS.Origins = []string{"https://a/"} },
		`http.cors.origins[0] is "a.test": an origin is https://HOST`:                       func(h *events.HTTP) { h.CORS.Origins = []string{"a.test"} },
		`http.cors.origins[0] is "https://A.test": an origin is https://HOST in lower case`: func(h *events.HTTP) { h.CORS.Origins = []string{"https://A.test"} },
		`http.cors.credentials is for named origins`:                                        func(h *events.HTTP) { h.CORS.Origins = []string{"*"} },
		`http.cors.methods[0] is "GET,PUT": it is a name`:                                   func(h *events.HTTP) { h.CORS.Methods = []string{"GET,PUT"} },
		`http.cors.maxAgeMs is 90000000: it is at most 24 hours`:                            func(h *events.HTTP) { h.CORS.MaxAge = events.Millis(25 * 3600e9) },
	} {
		h, c := *good.HTTP, *good.HTTP.CORS
		h.CORS = &c
		change(&h)
		spec := good
		spec.HTTP = &h
		require.ErrorContains(t, spec.Validate(), want)
	}
}

// FuzzPublicPaths: a path that is public is one of the pattern's literal beginning, and no URL parser takes it for
// another.
func FuzzPublicPaths(f *testing.F) {
	f.Add("/a/:id/*", "/a/7/b")
	f.Add("/a/*", "/a/%2e%2e/b")
	f.Add("/", "//")
	f.Add("/", "")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		h := events.HTTP{Auth: "T", Public: events.PublicPaths{"*": {pattern}}}
		if (events.Spec{Secrets: []string{"T"}, HTTP: &h}).Validate() != nil || !h.Public.Match("GET", events.NewPath(path)) {
			return
		}
		literal, _, _ := strings.Cut(pattern, ":")
		p := events.NewPath(path)
		require.True(t, strings.HasPrefix(p.Canonical(), events.PathKey(strings.TrimSuffix(literal, "*"))), "%q %q", pattern,
			path)
		require.False(t, events.DotSegment(p.URL()) || events.DotSegment(p.Canonical()))
		path = p.Canonical()
		require.LessOrEqual(t, strings.Count(strings.TrimSuffix(pattern, "*"), "/"), strings.Count(path, "/"), "%q %q",
			pattern, path)
	})
}

func FuzzParseRoute(f *testing.F) {
	f.Add("shop.acme.example/api/*")
	f.Add("*.a/%2F")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := events.ParseRoute(text)
		if err != nil {
			return
		}
		require.Equal(t, text, r.String())
		require.True(t, strings.HasPrefix(r.Path, "/"))
		require.NotContains(t, r.Host, "/")
	})
}
