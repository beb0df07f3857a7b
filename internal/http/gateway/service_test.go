package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ask sends a request to a host and returns status, body and headers of the response.
func ask(t *testing.T, addr, method, host, path string, header ...string) (int, string, http.Header) {
	t.Helper()
	var h strings.Builder
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&h, "%s: %s\r\n", header[i], header[i+1])
	}
	list := raw(t, addr, method+" "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n"+h.String()+"\r\n", 1)
	require.Len(t, list, 1)
	return list[0].StatusCode, text(t, list[0]), list[0].Header
}

const shop = "shop--acme.w.test"

func TestToken(t *testing.T) {
	t.Parallel()
	h := &backend{secrets: map[string]string{"TOKEN": "s3cret"}}
	one := version(1, &workers.HTTP{Previews: true})
	two := version(2, &workers.HTTP{Previews: true, Auth: "TOKEN",
		Public: workers.PublicPaths{"GET": {"/health", "/hooks/:id/*"}, "*": {"/open"}}})
	h.only(one, two)
	var s seen
	_, addr := open(t, domain, s.handle, h.in)
	for _, header := range [][]string{
		{}, {"Authorization", "Bearer"}, {"Authorization", "Bearer s3cre"}, {"Authorization", "Bearer s3cret2"},
		{"Authorization", "Bearer S3CRET"},
		{"Authorization", "s3cret"}, {"Authorization", "Basic czNjcmV0"}, {"Authorization", "Basic YWRhOnMzY3JlVA=="},
		{"X-Token", ""},
		{"X-Token", "s3cret", "X-Token", "s3cret"}, {"Authorization", "Bearer x", "Authorization", "Bearer s3cret"},
		{"Cookie", "token=s3cret"},
	} {
		status, _, headers := ask(t, addr, "GET", shop, "/", header...)
		require.Equal(t, http.StatusUnauthorized, status, header)
		require.Equal(t, []string{`Bearer realm="worker"`, `Basic realm="worker"`}, headers["Www-Authenticate"])
	}
	require.Empty(t, s.take(), "the worker does not run")
	for _, header := range [][]string{
		{"Authorization", "Bearer s3cret"}, {"Authorization", "bearer  s3cret"}, {"Authorization", "Basic YWRhOnMzY3JldA=="},
		{"X-Token", "s3cret"},
	} {
		status, _, _ := ask(t, addr, "GET", shop, "/", header...)
		require.Equal(t, http.StatusOK, status, header)
	}
	require.Len(t, s.take(), 4)
	for path, public := range map[string]bool{
		"/health": true, "/health?x": true, "/health/": false, "/healthy": false, "/HEALTH": false, "/hooks/7/": true,
		"/hooks/7/a/b": true, "/hooks//a": false,
		"/hooks/7": false, "/open": true, "/hooks/7/../../admin": false, "/hooks/7/%2e%2E/admin": false,
		"/hooks/7/.%2e/admin": false, "/hooks/7/./a": false, "/hooks/../a/b": false, "//health": false,
	} {
		status, _, _ := ask(t, addr, "GET", shop, path)
		require.Equal(t, public, status == http.StatusOK, "%s: %d", path, status)
	}
	status, _, _ := ask(t, addr, "DELETE", shop, "/health")
	require.Equal(t, http.StatusUnauthorized, status, "public with GET only")
	status, _, _ = ask(t, addr, "DELETE", shop, "/open")
	require.Equal(t, http.StatusOK, status)

	// No version is a way around it, not even one without a token, nor with a path that is public.
	for _, host := range []string{h.previewed(t, one), h.previewed(t, two)} {
		for _, path := range []string{"/", "/health"} {
			status, _, _ = ask(t, addr, "GET", host, path)
			require.Equal(t, http.StatusUnauthorized, status, host)
			status, _, _ = ask(t, addr, "GET", host, path, "X-Token", "s3cret")
			require.Equal(t, http.StatusOK, status, host)
		}
	}
	delete(h.secrets, "TOKEN")
	status, body, _ := ask(t, addr, "GET", shop, "/", "X-Token", "s3cret")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "the token of this worker cannot be read here\n", body)
}

// The version that says how a request is answered is the one that runs it, for each key of a split.
func TestSplitChoosesOnce(t *testing.T) {
	t.Parallel()
	h := (&backend{secrets: map[string]string{"TOKEN": "s3cret"}}).only(version(1, &workers.HTTP{Previews: true}),
		version(2, &workers.HTTP{Previews: true, Auth: "TOKEN"}))
	in := h.installed["acme/shop"]
	in.Deployment.Split = []workers.Share{{Version: in.Versions[0].Version, Percent: 50},
		{Version: in.Versions[1].Version, Percent: 50}}
	h.installed["acme/shop"] = in
	var s seen
	_, addr := open(t, domain, s.handle, h.in)
	ran := 0
	for i := range 40 {
		key := fmt.Sprint("k", i)
		status, _, _ := ask(t, addr, "GET", shop, "/", "Version-Key", key)
		list := s.take()
		if events.SplitPoint("acme", "shop", key) < 5000 {
			require.Equal(t, 401, status, key)
			require.Empty(t, list)
			continue
		}
		require.Len(t, list, 1, key)
		require.Equal(t, []any{"1-aaaaaaaaaaaa", true}, []any{list[0].Version, list[0].BySplit})
		ran++
	}
	require.NotZero(t, ran)
	_, _, _ = ask(t, addr, "GET", h.previewed(t, in.Versions[0]), "/")
	list := s.take()
	require.Equal(t, []any{"1-aaaaaaaaaaaa", false}, []any{list[0].Version, list[0].BySplit},
		"its client named the version")
}

func TestNoSuchWorker(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle, (&backend{}).only(version(1, nil)).in)
	for _, host := range []string{"none--acme.w.test", "shop--beta.w.test"} {
		status, body, _ := ask(t, addr, "GET", host, "/")
		require.Equal(t, []any{404, "no worker has this address\n"}, []any{status, body}, host)
	}
	require.Empty(t, s.take())
}

// A version has no host that can be counted, guessed or used too long, and none that its manifest, or that of a newer
// active version, does not want.
func TestPreviews(t *testing.T) {
	t.Parallel()
	var s seen
	on := &workers.HTTP{Previews: true}
	one, two := version(1, on), version(2, on)
	h := (&backend{}).only(one, two)
	_, addr := open(t, domain, s.handle, h.in)
	runs := func(host string) string {
		t.Helper()
		status, body, _ := ask(t, addr, "GET", host, "/")
		list := s.take()
		if len(list) == 0 {
			require.Equal(t, []any{404, "no worker has this address\n"}, []any{status, body}, host)
			return ""
		}
		return list[0].Version
	}
	good := h.previewed(t, one)
	require.Regexp(t, `^1-[0-9a-z]{5}-[a-z2-7]{16}--shop--acme\.w\.test$`, good)
	require.Equal(t, one.Version, runs(good))
	require.Equal(t, two.Version, runs(h.previewed(t, two)))
	label, _, _ := strings.Cut(good, "--")
	part := strings.Split(label, "-")
	later := strconv.FormatInt(time.Now().Unix()/60+60, timeBase)
	over, err := testPreviews.Host(one, nil, "w.test", time.Now())
	require.NoError(t, err)
	foreign, err := NewPreviews([][]byte{[]byte("another key")}).Host(one, nil, "w.test", time.Now().Add(time.Hour))
	require.NoError(t, err)
	for _, host := range []string{
		"1--" + shop, "2--" + shop, "9--" + shop, one.Version + "--" + shop, "beta--" + shop, over, foreign,
		"2-" + part[1] + "-" + part[2] + "--" + shop, "1-" + later + "-" + part[2] + "--" + shop,
		"01-" + part[1] + "-" + part[2] + "--" + shop,
		part[0] + "-" + part[1] + "-" + part[2][1:] + "--" + shop, label + "--other--acme.w.test",
		label + "--shop--beta.w.test",
	} {
		require.Empty(t, runs(host), host)
	}
	for name, c := range map[string]struct{ one, active *workers.HTTP }{
		"it is off": {nil, on}, "the newer version says nothing": {on, nil},
		"the newer version is off": {on, &workers.HTTP{}},
	} {
		h.only(version(1, c.one), version(2, c.active))
		require.Empty(t, runs(good), name)
		in := h.installed["acme/shop"]
		_, err := testPreviews.Host(in.Versions[0], in.Active(), "w.test", time.Now().Add(time.Hour))
		require.ErrorIs(t, err, ErrNoPreviews, name)
	}
	// A newer version is shown before it is active, whatever the active one says.
	in := h.only(version(1, nil), two).installed["acme/shop"]
	in.Deployment.Split[0].Version = one.Version
	require.Equal(t, two.Version, runs(h.previewed(t, two)))

	_, err = NewPreviews(nil).Host(one, nil, "w.test", time.Now())
	require.ErrorIs(t, err, ErrNoPreviewKey)
	for name, text := range map[string]string{strings.Repeat("x", 40): "too long for the host of a preview",
		"Shop": "has no host", "a--b": "has no host"} {
		w := *one
		w.Name = name
		_, err = testPreviews.Host(&w, nil, "w.test", time.Now())
		require.ErrorContains(t, err, text)
	}
	_, err = testPreviews.Host(one, nil, "", time.Now())
	require.ErrorContains(t, err, "PINWHEEL_HTTP_DOMAIN")
}

func TestCORS(t *testing.T) {
	t.Parallel()
	var s seen
	h := &backend{}
	g, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		r := s.handle(e)
		r.Headers = append(r.Headers, "vary", "Accept", "access-control-allow-origin", "https://evil.example",
			"access-control-allow-credentials", "true")
		return r
	}, h.in)
	const page = "https://shop.example"
	preflight := []string{"Origin", page, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers",
		"x-one, content-type"}
	of := func(h http.Header) map[string]string {
		got := map[string]string{}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
				got[name] = strings.Join(h[name], "; ")
			}
		}
		return got
	}
	for name, c := range map[string]struct {
		cors               *workers.CORS
		preflight, request map[string]string // nil = the worker runs
	}{
		"none": {nil, nil, map[string]string{"Vary": "Accept", "Access-Control-Allow-Origin": "https://evil.example",
			"Access-Control-Allow-Credentials": "true"}},
		"never": {&workers.CORS{Origins: []string{"none"}}, nil,
			map[string]string{"Vary": "Accept", "Access-Control-Allow-Origin": "https://evil.example",
				"Access-Control-Allow-Credentials": "true"}},
		"any": {
			&workers.CORS{Origins: []string{"*"}, Headers: []string{"X-Two"}},
			map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "PUT",
				"Access-Control-Allow-Headers": "X-Two", "Access-Control-Max-Age": "7200"},
			map[string]string{"Vary": "Accept", "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Event-Id"},
		},
		"reflective": {
			&workers.CORS{Origins: []string{"reflective"}, Credentials: true, Methods: []string{"GET", "PUT"},
				Expose: []string{"X-Total"}, MaxAge: workers.Millis(60e9)},
			map[string]string{
				"Vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers", "Access-Control-Allow-Origin": page,
				"Access-Control-Allow-Credentials": "true",
				"Access-Control-Allow-Methods":     "GET, PUT", "Access-Control-Allow-Headers": "x-one, content-type",
				"Access-Control-Max-Age": "60",
			},
			map[string]string{"Vary": "Origin; Accept", "Access-Control-Allow-Origin": page,
				"Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "Event-Id, X-Total"},
		},
		"another": {
			&workers.CORS{Origins: []string{"https://a.example", "https://b.example:8443"}},
			map[string]string{"Vary": "Origin"}, map[string]string{"Vary": "Origin; Accept"},
		},
	} {
		h.only(version(1, &workers.HTTP{CORS: c.cors}))
		status, _, headers := ask(t, addr, "OPTIONS", shop, "/", preflight...)
		switch ran := s.take(); {
		case c.preflight == nil:
			require.Len(t, ran, 1, name)
		case c.preflight["Access-Control-Allow-Origin"] == "":
			require.Equal(t, 403, status, name)
			require.Equal(t, c.preflight, of(headers), name)
			require.Empty(t, ran, name)
		default:
			require.Equal(t, 204, status, name)
			require.Equal(t, c.preflight, of(headers), name)
			require.Empty(t, ran, name)
		}
		status, _, headers = ask(t, addr, "GET", shop, "/", "Origin", page)
		require.Equal(t, 200, status, name)
		require.Equal(t, c.request, of(headers), name)
		s.take()
	}
	// A page may read why it was refused. A browser sends no token to ask what it may do.
	h.secrets = map[string]string{"TOKEN": "x"}
	h.only(version(1, &workers.HTTP{Auth: "TOKEN", CORS: &workers.CORS{Origins: []string{page}}}))
	status, _, headers := ask(t, addr, "GET", shop, "/", "Origin", page)
	require.Equal(t, []any{401, page}, []any{status, headers.Get("Access-Control-Allow-Origin")})
	status, _, _ = ask(t, addr, "OPTIONS", shop, "/", preflight...)
	require.Equal(t, 204, status)
	status, _, _ = ask(t, addr, "OPTIONS", shop, "/", "Origin", page)
	require.Equal(t, 401, status, "that is no preflight")
	_ = g
}

func TestMaxBodyOfAWorker(t *testing.T) {
	t.Parallel()
	var s seen
	h := (&backend{}).only(version(1, &workers.HTTP{MaxBody: 10}))
	_, addr := open(t, Config{Domain: "w.test", MaxBody: 20}, s.handle, h.in)
	post := func(length int) int {
		list := raw(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", shop, length, strings.Repeat("x", length)),
			1)
		return list[0].StatusCode
	}
	require.Equal(t, []int{200, 413}, []int{post(10), post(11)})
	h.only(version(1, &workers.HTTP{MaxBody: 100}))
	require.Equal(t, []int{200, 413}, []int{post(20), post(21)}, "the process's limit holds too")
}

func TestStored(t *testing.T) {
	t.Parallel()
	h := (&backend{}).only(version(1, &workers.HTTP{Delivery: workers.DeliverStored}))
	var s seen
	_, addr := open(t, domain, s.handle, h.in)
	post := func(body string, header ...string) *http.Response {
		r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/a?b=c", strings.NewReader(body))
		require.NoError(t, err)
		r.Host = shop
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := newClient(t, addr).Do(r)
		require.NoError(t, err)
		return resp
	}
	h.reply = func(client.Request, string) (*events.Reply, io.ReadCloser, error) {
		return &events.Reply{Status: 201, Headers: []string{"x-one", "1"}, Body: []byte("whole"), Version: "1-aaaaaaaaaaaa"},
			io.NopCloser(strings.NewReader("whole")), nil
	}
	resp := post("hello", "X-Two", "2", "Version-Key", "ada")
	require.Equal(t, []any{201, "1", "whole"}, []any{resp.StatusCode, resp.Header.Get("X-One"), text(t, resp)})
	require.Len(t, h.stored, 1)
	r := h.stored[0]
	require.Equal(t, []any{events.Fetch, "acme", "shop", "", "ada", "POST", "http://" + shop + "/a?b=c", "hello",
		resp.Header.Get("Event-Id"), []string{"2"}},
		[]any{r.Kind, r.Owner, r.Worker, r.Version, r.VersionKey, r.Method, r.URL, string(r.Body), r.ID,
			r.HTTPHeader["X-Two"]})
	require.False(t, r.Deadline.IsZero(), "it does not start when nobody waits any more")
	require.Empty(t, s.take(), "it is no direct event")

	// Bodies that are not short, both ways.
	big := strings.Repeat("0123456789", 100_000)
	h.reply = func(_ client.Request, body string) (*events.Reply, io.ReadCloser, error) {
		return &events.Reply{Status: 200, CreditSubject: "x"}, io.NopCloser(strings.NewReader(body)), nil
	}
	require.Equal(t, big, text(t, post(big)))
	h.reply = func(client.Request, string) (*events.Reply, io.ReadCloser, error) {
		return &events.Reply{Status: 200, CreditSubject: "x"},
			io.NopCloser(io.MultiReader(strings.NewReader("a"), failing{})), nil
	}
	_, err := io.ReadAll(post("x").Body)
	require.Error(t, err, "a body that breaks off is not taken for whole")

	for name, c := range map[string]struct {
		err    error
		status int
		text   string
	}{
		"failure":   {events.Fail(events.ReasonException, "the password is 42"), 500, "exception\n"},
		"malformed": {fmt.Errorf("x: %w: header", client.ErrMalformed), 400, "x: malformed event: header\n"},
		"no stream": {client.ErrNoStream, 503, "unavailable: the event was not stored\n"},
	} {
		h.reply = func(client.Request, string) (*events.Reply, io.ReadCloser, error) { return nil, nil, c.err }
		resp := post("x")
		require.Equal(t, []any{c.status, c.text}, []any{resp.StatusCode, text(t, resp)}, name)
	}
	h.refuses = events.Fail(events.ReasonRate, "too many")
	resp = post("x")
	require.Equal(t, []any{429, "rate\n", "1"}, []any{resp.StatusCode, text(t, resp), resp.Header.Get("Retry-After")})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestAccepted(t *testing.T) {
	t.Parallel()
	h := (&backend{}).only(version(1, &workers.HTTP{Delivery: workers.DeliverAccepted}))
	var s seen
	_, addr := open(t, domain, s.handle, h.in)
	list := raw(t, addr, "POST / HTTP/1.1\r\nHost: "+shop+"\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", 1)
	require.Equal(t, []any{202, ""}, []any{list[0].StatusCode, text(t, list[0])})
	require.Len(t, h.stored, 1)
	require.Equal(t, []any{"abc", list[0].Header.Get("Event-Id"), true},
		[]any{h.bodies[0], h.stored[0].ID, h.stored[0].Deadline.IsZero()})
	require.Empty(t, s.take())
	// A broken body stores nothing.
	list = raw(t, addr, "POST / HTTP/1.1\r\nHost: "+shop+"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", 1)
	require.Len(t, h.stored, 1)
	require.NotEqual(t, 202, status(list))
}

// An event whose id is taken is stored under another id, or the client learns that it is not stored.
func TestStoredUnderAnotherID(t *testing.T) {
	t.Parallel()
	for _, delivery := range []workers.Delivery{workers.DeliverAccepted, workers.DeliverStored} {
		h := (&backend{}).only(version(1, &workers.HTTP{Delivery: delivery}))
		h.reply = func(client.Request, string) (*events.Reply, io.ReadCloser, error) {
			return &events.Reply{Status: 202, Version: "1-aaaaaaaaaaaa"}, io.NopCloser(strings.NewReader("")), nil
		}
		var s seen
		_, addr := open(t, domain, s.handle, h.in)
		for _, c := range []struct{ taken, status, stored, body int }{{1, 202, 2, 3},
			{maxRenames + 1, 503, maxRenames + 1, 3}, {1, 503, 1, 2 * wholeBody}} {
			h.stored = nil
			h.taken.Store(int64(c.taken))
			list := raw(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", shop, c.body,
				strings.Repeat("x", c.body)), 1)
			require.Equal(t, c.status, status(list), "%s %+v", delivery, c)
			require.Len(t, h.stored, c.stored, "%s %+v", delivery, c)
			for i, r := range h.stored {
				require.Equal(t, []string{r.ID}, r.HTTPHeader["Event-Id"])
				require.Regexp(t, "^http-[0-9a-f]{32}$", r.ID)
				require.True(t, i == 0 || r.ID != h.stored[i-1].ID)
			}
			require.Equal(t, h.stored[len(h.stored)-1].ID, list[0].Header.Get("Event-Id"))
		}
	}
}

// status of the first response; 0 = there is none.
func status(list []*http.Response) int {
	if len(list) == 0 {
		return 0
	}
	return list[0].StatusCode
}
