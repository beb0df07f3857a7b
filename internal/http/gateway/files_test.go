package gateway

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// memoryFiles is a Files in memory: each file is stored as it is, and under half of its bytes as gzip.
type memoryFiles struct {
	lists  map[string]*assets.List
	bytes  map[string]string // by hash
	broken atomic.Bool
	turn   func(ctx context.Context, owner string) error // nil = it is always the owner's
}

func (s *memoryFiles) List(_ context.Context, _, hash string) (*assets.List, error) {
	if l := s.lists[hash]; l != nil && !s.broken.Load() {
		return l, nil
	}
	return nil, errors.New("no list")
}

func (s *memoryFiles) Stored(_ context.Context, _, hash string) (assets.Stored, error) {
	data := s.bytes[hash]
	stored := assets.Stored{Size: int64(len(data))}
	if small := zipped(data); len(small) < len(data)/2 {
		stored.Gzip = int64(len(small))
	}
	return stored, nil
}

func (s *memoryFiles) Turn(ctx context.Context, owner string, f func()) error {
	if s.turn != nil {
		return s.turn(ctx, owner)
	}
	f()
	return nil
}

func (s *memoryFiles) Part(_ context.Context, _, hash string, e assets.Encoding, n int) ([]byte, error) {
	data := s.bytes[hash]
	if e == assets.Gzip {
		data = zipped(data)
	}
	return []byte(data[n*assets.PartBytes : min(len(data), (n+1)*assets.PartBytes)]), nil
}

func zipped(data string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, data)
	_ = w.Close()
	return b.String()
}

// put makes a list of files with the hash name.
func (s *memoryFiles) put(name string, files map[string]string, rules ...assets.Redirect) {
	l := &assets.List{Files: map[string]assets.File{}, Redirects: rules}
	for path, data := range files {
		hash := assets.HashOf([]byte(data))
		s.bytes[hash] = data
		l.Files[path] = assets.File{Hash: hash, Size: int64(len(data)), Type: "text/html; charset=utf-8"}
	}
	text, _, err := l.Encode()
	if err == nil {
		l, err = assets.Decode(text)
	}
	if err != nil {
		panic(err)
	}
	s.lists[name] = l
}

func newMemoryFiles() *memoryFiles {
	return &memoryFiles{lists: map[string]*assets.List{}, bytes: map[string]string{}}
}

const filesOf1, filesOf2 = "1111", "2222"

// openSite opens a gateway whose only worker, acme/shop, has files.
func openSite(t *testing.T, files *memoryFiles, a *workers.Assets, handlers ...events.Kind) (*seen, string) {
	t.Helper()
	w := version(2, &workers.HTTP{})
	w.Assets, w.Handlers = a, handlers
	old := version(1, nil)
	old.Assets = &workers.Assets{Files: filesOf1}
	h := (&backend{}).only(old, w)
	s := &seen{}
	_, addr := open(t, domain, s.handle, h.in, func(g *Gateway) { g.Files = files })
	return s, addr
}

func getFile(t *testing.T, addr, path string, headers ...string) *http.Response {
	t.Helper()
	return do(t, addr, http.MethodGet, path, headers...)
}

func do(t *testing.T, addr, method, path string, headers ...string) *http.Response {
	t.Helper()
	request := method + " " + path + " HTTP/1.1\r\nHost: " + shop + "\r\nConnection: close\r\n"
	for i := 0; i < len(headers); i += 2 {
		request += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	list := raw(t, addr, request+"\r\n", 1)
	require.Len(t, list, 1, path)
	return list[0]
}

func TestFiles(t *testing.T) {
	t.Parallel()
	files := newMemoryFiles()
	big := strings.Repeat("0123456789", 40_000) // several parts
	files.put(filesOf1, map[string]string{"/old-1a2b3c4d.js": "of the version before", "/secret.html": "a page"})
	files.put(filesOf2, map[string]string{"/index.html": "home", "/docs/index.html": "docs", "/about.html": "about",
		"/big": big, "/a b.txt": "space"},
		assets.Redirect{From: "/go/*", To: "/:splat", Status: 302}, assets.Redirect{From: "/hidden", To: "/about.html",
			Status: 200})
	s, addr := openSite(t, files, &workers.Assets{Files: filesOf2, WorkerFirst: []string{"/docs/api/*"}}, events.Fetch)

	r := getFile(t, addr, "/")
	require.Equal(t, []any{200, "home", "text/html; charset=utf-8", "public, max-age=0, must-revalidate"},
		[]any{r.StatusCode, text(t, r), r.Header.Get("Content-Type"), r.Header.Get("Cache-Control")})
	tag := r.Header.Get("Etag")
	require.Equal(t, 304, getFile(t, addr, "/", "If-None-Match", tag).StatusCode)
	require.Equal(t, "space", text(t, getFile(t, addr, "/a%20b.txt")))
	require.Equal(t, "of the version before", text(t, getFile(t, addr, "/old-1a2b3c4d.js")),
		"a page of the version before asks for it")
	r = do(t, addr, http.MethodHead, "/about")
	require.Equal(t, []any{200, "5"}, []any{r.StatusCode, r.Header.Get("Content-Length")})

	for path, to := range map[string]string{
		"/docs": "/docs/", "/docs/index.html?x=1": "/docs/?x=1", "/about.html": "/about", "/about/": "/about", "/index": "/",
		"/go//evil.example": "/evil.example?", "/go/%5cevil": "/%5Cevil",
	} {
		r := getFile(t, addr, path)
		require.Contains(t, []int{302, 307}, r.StatusCode, path)
		require.Equal(t, strings.TrimSuffix(to, "?"), r.Header.Get("Location"), path)
	}
	require.Equal(t, "about", text(t, getFile(t, addr, "/hidden")))

	r = getFile(t, addr, "/big", "Range", "bytes=131070-131075")
	require.Equal(t, []any{206, big[131070:131076]}, []any{r.StatusCode, text(t, r)})
	r = getFile(t, addr, "/big", "Accept-Encoding", "br;q=0, GZIP;q=0.5")
	require.Equal(t, []any{"gzip", zipped(big), "Accept-Encoding"}, []any{r.Header.Get("Content-Encoding"), text(t, r),
		r.Header.Get("Vary")})
	require.NotEqual(t, tag, r.Header.Get("Etag"))
	require.Equal(t, big, text(t, getFile(t, addr, "/big", "Accept-Encoding", "gzip;q=0")))
	require.Empty(t, s.take(), "the worker never ran")

	for _, path := range []string{"/nowhere", "/docs/api/x", "/%2e%2e/about", "/docs/..%2findex.html", "/secret",
		"/secret.html"} {
		require.Equal(t, 200, getFile(t, addr, path).StatusCode, path)
		require.Len(t, s.take(), 1, path)
	}
	require.Equal(t, 200, do(t, addr, http.MethodPost, "/", "Content-Length", "0").StatusCode)
	require.Len(t, s.take(), 1, "only GET and HEAD read files")
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodOptions} {
		r = do(t, addr, method, "/go/about", "Content-Length", "0")
		require.Equal(t, []any{302, "/about"}, []any{r.StatusCode, r.Header.Get("Location")}, method)
		require.Empty(t, s.take(), "a redirect is for every method")
		require.Equal(t, 200, do(t, addr, method, "/hidden", "Content-Length", "0").StatusCode)
		require.Len(t, s.take(), 1, "a file of a rule is for GET and HEAD")
	}

	files.broken.Store(true)
	r = getFile(t, addr, "/")
	require.Equal(t, []any{503, "1"}, []any{r.StatusCode, r.Header.Get("Retry-After")})
}

// What stands behind a ! in workerFirst is taken out of it, also for a file that has more paths.
func TestPathsTakenOutOfWorkerFirst(t *testing.T) {
	t.Parallel()
	files := newMemoryFiles()
	files.put(filesOf2, map[string]string{"/index.html": "home", "/assets/app.js": "code", "/docs/index.html": "docs",
		"/docs/api/x.html": "x", "/plan.html": "plan"}, assets.Redirect{From: "/assets/plan", To: "/plan.html", Status: 200})
	s, addr := openSite(t, files, &workers.Assets{Files: filesOf2,
		WorkerFirst: []string{"!/assets/*", "/*", "!/docs/*", "/docs/api/*"}}, events.Fetch)
	for path, want := range map[string]string{
		"/assets/app.js": "code", "/docs/": "docs", "/docs/api/x": "x", "/": "", "/docs": "", "/plan": "", "/assets/plan": "",
	} {
		r := getFile(t, addr, path)
		require.Equal(t, 200, r.StatusCode, path)
		if want != "" {
			require.Equal(t, want, text(t, r), path)
		}
		require.Equal(t, want == "", len(s.take()) == 1, path)
	}
}

// A file is looked for when it is the turn of the worker's owner. A request whose client has gone waits no more.
func TestFilesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	files := newMemoryFiles()
	files.put(filesOf2, map[string]string{"/index.html": "home"})
	waits, ended := make(chan string, 1), make(chan struct{})
	files.turn = func(ctx context.Context, owner string) error {
		waits <- owner
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	s, addr := openSite(t, files, &workers.Assets{Files: filesOf2}, events.Fetch)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+shop+"\r\n\r\n")
	require.NoError(t, err)
	require.Equal(t, "acme", <-waits)
	require.NoError(t, c.Close())
	<-ended
	require.Empty(t, s.take(), "the worker does not run")
}

// What answers where there is no file.
func TestNoFile(t *testing.T) {
	t.Parallel()
	files := newMemoryFiles()
	files.put(filesOf1, nil)
	files.put(filesOf2, map[string]string{"/index.html": "app", "/404.html": "lost", "/docs/404.html": "lost in docs"})
	navigates := []string{"Sec-Fetch-Mode", "navigate"}
	for _, c := range []struct {
		how     workers.NotFound
		fetch   bool
		path    string
		headers []string
		status  int
		body    string // "" = the worker's, or any
	}{
		{workers.NotFoundNone, false, "/x", nil, 404, "there is no file at this path\n"},
		{workers.NotFoundPage, false, "/docs/x/y", nil, 404, "lost in docs"},
		{workers.NotFoundPage, false, "/x", []string{"Range", "bytes=0-1"}, 404, "lost"},
		{workers.NotFoundSPA, false, "/x", nil, 200, "app"},
		{workers.NotFoundSPA, true, "/x", navigates, 200, "app"},
		{workers.NotFoundSPA, true, "/x", nil, 200, ""},
		{workers.NotFoundPage, true, "/x", navigates, 200, ""},
	} {
		handlers := []events.Kind{events.Task}
		if c.fetch {
			handlers = append(handlers, events.Fetch)
		}
		s, addr := openSite(t, files, &workers.Assets{Files: filesOf2, NotFound: c.how}, handlers...)
		r := getFile(t, addr, c.path, c.headers...)
		require.Equal(t, c.status, r.StatusCode, c)
		if c.body == "" {
			require.Len(t, s.take(), 1, "%v: the worker runs", c)
		} else {
			require.Equal(t, c.body, text(t, r), c)
			require.Empty(t, s.take(), c)
		}
		if !c.fetch {
			r = do(t, addr, http.MethodPost, "/", "Content-Length", "0")
			require.Equal(t, []any{405, "GET, HEAD"}, []any{r.StatusCode, r.Header.Get("Allow")})
		}
	}
}
