package gateway

import (
	"html"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	head     = "<!doctype html><html><head>"
	restPage = "<title>home</title></head></html>"
	baseHref = "/it%27s&co" // of the worker
)

func baseTag(prefix string) string { return `<base href="` + html.EscapeString(prefix) + `/">` }

// based opens a gateway with acme/shop below baseHref: the page / with a place for <base>, and a page /own without one.
func based(t *testing.T, cfg Config, h *workers.HTTP) (*seen, string) {
	t.Helper()
	files := newMemoryFiles()
	files.put(filesOf2, map[string]string{"/index.html": head + restPage, "/own.html": "own"},
		assets.Redirect{From: "/go", To: "/there", Status: 301})
	list := files.lists[filesOf2]
	page := list.Files["/index.html"]
	page.BaseAt = int64(len(head)) + 1
	list.Files["/index.html"] = page
	h.Base = baseHref
	w := version(2, h)
	w.Assets, w.Handlers = &workers.Assets{Files: filesOf2, NotFound: workers.NotFoundSPA}, []events.Kind{events.Fetch}
	s := &seen{}
	_, addr := open(t, cfg, s.handle, (&backend{secrets: map[string]string{"TOKEN": "s3cret"}}).only(w).in,
		func(g *Gateway) { g.Files = files })
	return s, addr
}

func TestBase(t *testing.T) {
	t.Parallel()
	s, addr := based(t, domain, &workers.HTTP{})
	page := head + baseTag(baseHref) + restPage
	for _, path := range []string{baseHref, baseHref + "/", baseHref + "/index.html"} {
		r := getFile(t, addr, path)
		if path == baseHref+"/index.html" {
			require.Equal(t, baseHref+"/", r.Header.Get("Location"))
			continue
		}
		require.Equal(t, page, text(t, r), path)
		require.Equal(t, int64(len(page)), r.ContentLength)
		require.Empty(t, r.Header.Get("Content-Encoding"))
	}
	r := getFile(t, addr, baseHref+"/own")
	require.Equal(t, "own", text(t, r))
	require.NotContains(t, r.Header.Get("Etag"), "-")
	require.Equal(t, baseHref+"/there", getFile(t, addr, baseHref+"/go").Header.Get("Location"))
	r = getFile(t, addr, baseHref+"/deep/link", "Sec-Fetch-Mode", "navigate")
	require.Equal(t, page, text(t, r))

	require.Equal(t, "own", text(t, getFile(t, addr, "/%69t's%26co/own")), "the same base, escaped in another way")

	// The handler sees what is below the base.
	r = getFile(t, addr, baseHref+"/api/x?y=1")
	require.Equal(t, "ok", text(t, r))
	e := s.take()[0]
	require.Equal(t, "http://"+shop+"/api/x?y=1", e.URL)
	require.Contains(t, strings.Join(e.HTTPHeaders, "\n"), headerForwardedPrefix+"\n"+baseHref)

	for _, path := range []string{"/", "/api", baseHref + "s/", "/x" + baseHref + "/", "/it%2527s&co/", "/It's&co/",
		baseHref + "%2f", baseHref + "/%2e%2e/x", "//" + baseHref[1:] + "/"} {
		r = getFile(t, addr, path)
		require.Equal(t, http.StatusNotFound, r.StatusCode, path)
		require.Equal(t, "the paths of this worker begin with its http.base\n", text(t, r), path)
	}
	require.Empty(t, s.take())
}

// Each range of a page, and each piece of it that a client asks for, is that of the page with its <base>.
func TestRangesOfPagesWithBase(t *testing.T) {
	t.Parallel()
	_, addr := based(t, domain, &workers.HTTP{})
	page := head + baseTag(baseHref) + restPage
	first := getFile(t, addr, baseHref+"/")
	tag := first.Header.Get("Etag")
	require.Equal(t, http.StatusNotModified, getFile(t, addr, baseHref+"/", "If-None-Match", tag).StatusCode)
	for from := 0; from < len(page); from += 7 {
		for _, to := range []int{from, from + 3, from + 40, len(page) - 1} {
			if to >= len(page) {
				continue
			}
			r := getFile(t, addr, baseHref+"/", "Range", "bytes="+strconv.Itoa(from)+"-"+strconv.Itoa(to), "If-Range", tag)
			require.Equal(t, http.StatusPartialContent, r.StatusCode)
			require.Equal(t, page[from:to+1], text(t, r))
		}
	}
}

// A worker that is reached below its name has both before its paths.
func TestBaseBelowPaths(t *testing.T) {
	t.Parallel()
	s, addr := based(t, Config{Paths: "acme", Domain: "w.test"},
		&workers.HTTP{Auth: "TOKEN", Public: workers.PublicPaths{"GET": {"/health", "/"}}})
	ask := func(path string) *http.Response {
		return raw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 1)[0]
	}
	prefix := "/shop" + baseHref
	require.Equal(t, head+baseTag(prefix)+restPage, text(t, ask(prefix+"/")))
	// Paths that are public are those that the worker sees.
	require.Equal(t, http.StatusOK, ask(prefix+"/health").StatusCode)
	require.Equal(t, "http://localhost/health", s.take()[0].URL)
	for _, path := range []string{prefix + "/healthy", prefix + "/x/health", prefix + "/%2e%2e" + baseHref + "/x",
		prefix + "/health%2f"} {
		require.Equal(t, http.StatusUnauthorized, ask(path).StatusCode, path)
	}
	for _, path := range []string{"/shop/health", prefix + "/%2e%2e/health"} {
		require.Equal(t, http.StatusNotFound, ask(path).StatusCode, path)
	}
}
