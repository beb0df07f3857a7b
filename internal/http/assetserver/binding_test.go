package assetserver

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// memoryFiles is a Files in memory with one list, of owner acme. Each file is stored as gzip too, which is never asked
// for.
type memoryFiles struct {
	list  *assets.List
	bytes map[string]string // by hash
}

const listHash = "1111"

var errNothing = errors.New("nothing is stored there")

func (s *memoryFiles) List(_ context.Context, owner, hash string) (*assets.List, error) {
	if owner != "acme" || hash != listHash {
		return nil, errNothing
	}
	return s.list, nil
}

func (s *memoryFiles) Stored(_ context.Context, owner, hash string) (assets.Stored, error) {
	if data, ok := s.bytes[hash]; ok && owner == "acme" {
		return assets.Stored{Size: int64(len(data)), Gzip: 1}, nil
	}
	return assets.Stored{}, errNothing
}

func (s *memoryFiles) Turn(ctx context.Context, _ string, f func()) error {
	if ctx.Err() == nil {
		f()
	}
	return ctx.Err()
}

func (s *memoryFiles) Part(_ context.Context, _, hash string, e assets.Encoding, n int) ([]byte, error) {
	if e != assets.Plain {
		return nil, errNothing
	}
	data := s.bytes[hash]
	return []byte(data[n*assets.PartBytes : min(len(data), (n+1)*assets.PartBytes)]), nil
}

func newMemoryFiles(t *testing.T, files map[string]string) *memoryFiles {
	t.Helper()
	s := &memoryFiles{list: &assets.List{Files: map[string]assets.File{}, Redirects: []assets.Redirect{
		{From: "/go", To: "/there", Status: 301}, {From: "/away", To: "https://else.example/x", Status: 302},
	}}, bytes: map[string]string{}}
	for path, data := range files {
		hash := assets.HashOf([]byte(data))
		s.bytes[hash] = data
		f := assets.File{Hash: hash, Size: int64(len(data)), Type: "text/html; charset=utf-8"}
		if at := strings.Index(data, "<head>"); at >= 0 {
			f.BaseAt = int64(at+len("<head>")) + 1
		}
		s.list.Files[path] = f
	}
	text, _, err := s.list.Encode()
	require.NoError(t, err)
	s.list, err = assets.Decode(text)
	require.NoError(t, err)
	return s
}

func siteWorker(a workers.Assets, base string) *workers.Worker {
	a.Files = listHash
	w := &workers.Worker{Owner: "acme", Name: "shop", Version: "1-x", Spec: workers.Spec{Assets: &a}}
	if base != "" {
		w.HTTP = &workers.HTTP{Base: base}
	}
	return w
}

// ask is a request of a handler.
func ask(s *memoryFiles, w *workers.Worker, follows bool, method, url string,
	headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	_ = ServeBinding(rec, r, s, w, follows)
	return rec
}

func TestBindingOfFiles(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 30_000) // three parts
	s := newMemoryFiles(t, map[string]string{"/index.html": "home", "/about.html": "about", "/api/x.js": "x",
		"/big.bin": big, "/404.html": "lost", "/empty": ""})
	w := siteWorker(workers.Assets{NotFound: workers.NotFoundPage, WorkerFirst: []string{"/api/*"}}, "")
	for url, want := range map[string]string{
		"http://any.example/": "200 home", "http://any.example": "200 home", "https://other.example:1/about?x=1": "200 about",
		"http://h/api/x.js": "200 x",
		"http://h/nowhere":  "404 lost", "http://h/%2e%2e/about": "404 lost", "http://h/x/..%2fabout": "404 lost",
		"http://h/%2fabout": "404 lost", "http://h//nowhere": "404 lost",
		"http://h/..%5cabout": "404 lost", "http://h/empty": "200 ", "http://h/big.bin": "200 " + big,
	} {
		got := ask(s, w, true, "GET", url)
		require.Equal(t, want, fmt.Sprint(got.Code, " ", got.Body), url)
	}
	for url, want := range map[string]string{"//about": "/about", "///about.html?q": "/about?q", "//": "/",
		"//api//x.js": "/api/x.js",
		"/about//":    "/about", "//%61bout": "/about", "/about.html?q": "/about?q", "/%61bout": "/about",
		"/api/%78.js?q": "/api/x.js?q", "/index": "/", "/go": "/there", "/away": "https://else.example/x"} {
		require.Equal(t, want, ask(s, w, false, "GET", "http://h"+url).Header().Get("Location"), url)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		got := ask(s, w, true, method, "http://h/")
		require.Equal(t, []any{405, "GET, HEAD"}, []any{got.Code, got.Header().Get("Allow")})
		require.Equal(t, "/there", ask(s, w, false, method, "http://h/go").Header().Get("Location"), "as for GET")
	}

	// As they are, with what the gateway says of them.
	got := ask(s, w, true, "GET", "http://h/big.bin", "Accept-Encoding", "gzip, br", "Range", "bytes=150000-150009")
	require.Equal(t, []any{206, "0123456789", "", ""},
		[]any{got.Code, got.Body.String(), got.Header().Get("Content-Encoding"), got.Header().Get("Vary")})
	tag := got.Header().Get("Etag")
	require.Equal(t, 304, ask(s, w, true, "GET", "http://h/big.bin", "If-None-Match", tag).Code)
	require.Equal(t, 200, ask(s, w, true, "GET", "http://h/big.bin", "If-Match", `"x", `+tag).Code)
	failed := ask(s, w, true, "GET", "http://h/big.bin", "If-Match", `"x"`)
	require.Equal(t, 412, failed.Code)
	require.Empty(t, failed.Header().Get("Content-Length"))
	got = ask(s, w, true, "HEAD", "http://h/big.bin")
	require.Equal(t, []any{200, "300000", "", "public, max-age=0, must-revalidate"},
		[]any{got.Code, got.Header().Get("Content-Length"), got.Body.String(), got.Header().Get("Cache-Control")})

	w.Assets.NotFound = workers.NotFoundSPA
	require.Equal(t, "home", ask(s, w, true, "GET", "http://h/deep/link").Body.String(),
		"as at Cloudflare, navigating or not")
	w.Assets.NotFound = ""
	require.Equal(t, 404, ask(s, w, true, "GET", "http://h/deep/link").Code)
	w.Owner = "beta"
	require.Equal(t, 503, ask(s, w, true, "GET", "http://h/").Code, "the files of another owner")
}

// What a handler passes on to a client fits the address that the client has.
func TestBindingBelowAPrefix(t *testing.T) {
	t.Parallel()
	s := newMemoryFiles(t, map[string]string{"/index.html": "<head></head>", "/about.html": "about"})
	w := siteWorker(workers.Assets{}, "/shop")
	for prefix, want := range map[string]string{
		"": "/shop", "/dev/shop": "/dev/shop", "//evil.example": "/shop", "/\\evil.example": "/shop", "/a/../b": "/shop",
		"evil": "/shop", "/a//b": "/shop", "/%2e%2e": "/shop",
	} {
		require.Equal(t, want+"/about", ask(s, w, false, "GET", "http://h/about.html", "X-Forwarded-Prefix", prefix).Header().
			Get("Location"), prefix)
		require.Equal(t, "/about", ask(s, w, true, "GET", "http://h/about.html", "X-Forwarded-Prefix", prefix).Header().
			Get("Location"), "it is followed here")
		for _, follows := range []bool{true, false} {
			require.Equal(t, `<head><base href="`+want+`/"></head>`, ask(s, w, follows, "GET", "http://h/", "X-Forwarded-Prefix",
				prefix).Body.String())
		}
	}
	require.Equal(t, "<head></head>", ask(s, siteWorker(workers.Assets{}, ""), false, "GET", "http://h/",
		"X-Forwarded-Prefix", "/x").Body.String())
}

// What _headers says of a path is on redirects and refusals too.
func TestHeadersOfAllAnswers(t *testing.T) {
	t.Parallel()
	s := newMemoryFiles(t, map[string]string{"/index.html": "home", "/about.html": "about"})
	s.list.Headers = []assets.HeaderRule{{Path: "/*", Set: [][2]string{{"X-All", "yes"}, {"Location", "/evil"}}},
		{Path: "/go", Set: [][2]string{{"X-Go", "yes"}}},
		{Path: "/none", Set: [][2]string{{"Content-Type", "a/b"}}, Remove: []string{"X-All"}}}
	encoded, _, err := s.list.Encode()
	require.NoError(t, err)
	s.list, err = assets.Decode(encoded)
	require.NoError(t, err)
	w := siteWorker(workers.Assets{}, "")
	for request, want := range map[string][]any{
		"GET /": {200, "yes", ""}, "GET /about.html": {307, "yes", ""},
		"GET //about": {307, "yes", ""}, "GET /go": {301, "yes", "yes"},
		"POST /go": {301, "yes", "yes"}, "GET /away": {302, "yes", ""},
		"GET /lost": {404, "yes", ""}, "POST /": {405, "yes", ""},
		"GET /none": {404, "", ""},
	} {
		method, path, _ := strings.Cut(request, " ")
		got := ask(s, w, false, method, "http://h"+path)
		require.Equal(t, want, []any{got.Code, got.Header().Get("X-All"), got.Header().Get("X-Go")}, request)
	}
	require.Equal(t, "/there", ask(s, w, false, "GET", "http://h/go").Header().Get("Location"))
	require.Equal(t, "text/plain; charset=utf-8", ask(s, w, false, "GET", "http://h/none").Header().Get("Content-Type"))
}
