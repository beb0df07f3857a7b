package bindings

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// cached calls a method of the caches of an owner.
func (p process) cached(owner, method, body string, texts ...string) lifecycle.Answer {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	a, err := p.Bindings.Call(ctx, &lifecycle.Call{
		Owner: owner, Binding: workers.Binding{Kind: workers.BindingCache}, Method: method, Texts: texts, Body: []byte(body),
		Hold: func(int) error { return nil },
	})
	require.NoError(p, err)
	return a
}

func (p process) cache1m(owner, url, body string) {
	p.cached(owner, "put", body, "default", url, "200", "Cache-Control", "max-age=60")
}

func (p process) cachedBody(owner, name, url string) string {
	return string(p.cached(owner, "match", "", name, url, "", "", "").Body)
}

// Owners and the names of caches are apart.
func TestCachesAreApart(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.cache1m("acme", "http://w/", "of acme")
	p.cache1m("beta", "http://w/", "of beta")
	require.Equal(t, "of acme", p.cachedBody("acme", "default", "http://w/"))
	require.Empty(t, p.cachedBody("acme", "named default", "http://w/"))
	require.Empty(t, p.cachedBody("acme", "default", "http://w/*"))
	require.Equal(t, []string{"true"}, p.cached("acme", "delete", "", "default", "http://w/").Texts)
	require.Equal(t, []string{"false"}, p.cached("acme", "delete", "", "default", "http://w/").Texts)
	require.Equal(t, "of beta", p.cachedBody("beta", "default", "http://w/"))
}

// A cache that is full loses its oldest responses. The owner's keys and values have room of their own.
func TestCachesAreBounded(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.catalog.SetPolicy("acme", workers.Policy{CacheBytes: 2 << 20})
	for i := range 10 {
		p.cache1m("acme", fmt.Sprint(i), strings.Repeat("x", 400<<10))
	}
	require.Empty(t, p.cachedBody("acme", "default", "0"))
	require.Len(t, p.cachedBody("acme", "default", "9"), 400<<10)
	p.put("acme", "k", "v")
	p.cache1m("acme", "large", strings.Repeat("x", maxCached+1))
	require.Empty(t, p.cachedBody("acme", "default", "large"), "it is not kept, and that is no error")
}

func TestCachedResponsesExpire(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.cached("acme", "put", "short", "default", "u", "200", "Cache-Control", "max-age=1")
	p.cache1m("acme", "v", "long")
	require.Eventually(t, func() bool { return p.cachedBody("acme", "default", "u") == "" }, time.Minute,
		20*time.Millisecond)
	require.Equal(t, "long", p.cachedBody("acme", "default", "v"))
}

// A stream that is gone is made again.
func TestCacheIsMade(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	p, other := open(t, nc), open(t, nc)
	p.cache1m("acme", "u", "1")
	require.Equal(t, "1", other.cachedBody("acme", "default", "u"))
	require.NoError(t, p.js.DeleteStream(t.Context(), "KV_"+CacheBucket("acme")))
	_, err := p.Bindings.Call(t.Context(),
		&lifecycle.Call{Owner: "acme", Binding: workers.Binding{Kind: workers.BindingCache}, Method: "match",
			Texts: make([]string, 5)})
	require.ErrorContains(t, err, "Cache GET failed: 503")
	p.cache1m("acme", "u", "2")
	require.Equal(t, "2", p.cachedBody("acme", "default", "u"))
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{200, "max-age=60", time.Minute},
		{200, "MAX-AGE = 60", time.Minute},
		{200, `max-age="60"`, time.Minute},
		{200, "public, max-age=1, s-maxage=60", time.Minute},
		{200, "max-age=60, s-maxage=0", 0},
		{200, "max-age=99999999999999", maxFresh},
		{200, "max-age=-1", 0},
		{200, "max-age=x", 0},
		{200, "max-age=60, no-store", 0},
		{200, "max-age=60, no-cache", 0},
		{200, "private, max-age=60", 0},
		{200, `private="X-A, X-B", max-age=60`, time.Minute},
		{200, "", 0},
		{206, "max-age=60", 0},
		{500, "max-age=60", 0},
		{404, "max-age=60", time.Minute},
	} {
		require.Equal(t, c.want, freshness(c.status, http.Header{"Cache-Control": {c.header}}, now), c.header)
	}
	require.Equal(t, time.Hour, freshness(200, http.Header{"Expires": {"Thu, 01 Jan 2026 01:00:00 GMT"}}, now))
	require.Zero(t, freshness(200, http.Header{"Expires": {"0"}}, now))
	cookie := http.Header{"Set-Cookie": {"a=b"}, "Cache-Control": {"max-age=60"}}
	require.Zero(t, freshness(200, cookie, now))
	cookie.Set("Cache-Control", `max-age=60, private="Set-Cookie"`)
	require.Equal(t, time.Minute, freshness(200, cookie, now))
	require.Equal(t, []string{"x", "y"},
		withoutPrivate(head{200, []string{"Cache-Control", `private="Set-Cookie, cache-control"`, "Set-Cookie", "a=b", "X",
			"y"}}))
}

// What a response has no time for is not kept, and no header makes the cache fail.
func TestFreshnessOfAnyHeader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-z-]{1,8}(="?[0-9a-zA-Z, ]{0,6}"?)?,? ?){0,5}`)).
			Draw(t, "header")
		d := freshness(200, http.Header{"Cache-Control": {header}, "Expires": {header}}, time.Now())
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, maxFresh)
		withoutPrivate(head{200, []string{"Cache-Control", header, header, header}})
	})
}
