package compat_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testHono(t *testing.T, f *fleet) {
	w := f.deploy(t, "hono.tsx", "--var", "SECRET=s3cret")
	a := w.get(t, "/")
	require.Equal(t, "200 hello", a.text())
	require.Equal(t, "text/plain; charset=UTF-8", a.header.Get("Content-Type"))
	require.Regexp(t, `^[0-9a-f-]{36}$`, a.header.Get("X-Request-Id"))
	require.Contains(t, a.header.Get("Server-Timing"), "total;dur=")
	require.JSONEq(t, `{"id":17,"q":["a b","c"]}`, w.get(t, "/users/17?q=a+b&q=c").body)
	require.Equal(t, `404 {"missing":"/users/x"}`, w.get(t, "/users/x").text())
	require.Equal(t, `200 <main class="x">&lt;escaped&gt; &amp; <b>6</b></main>`, w.get(t, "/page").text())
	require.Equal(t, "short and stout", w.get(t, "/teapot").body)
	require.Equal(t, `500 {"error":"broken"}`, w.get(t, "/broken").text())
	require.Equal(t, 504, w.get(t, "/slow").status)

	a = w.fetch(t, "PUT", "https://api.example/api/echo?x=1", "body €", "Content-Type", "text/x", "Origin",
		"https://app.example")
	require.JSONEq(t, `{"method":"PUT","type":"text/x","body":"body €","url":"https://api.example/api/echo?x=1"}`, a.body)
	require.Equal(t, "https://app.example", a.header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "SAMEORIGIN", a.header.Get("X-Frame-Options"))
	a = w.fetch(t, "OPTIONS", "/api/echo", "", "Origin", "https://app.example", "Access-Control-Request-Method", "PUT")
	require.Equal(t, 204, a.status)
	require.Equal(t, "GET,PUT", a.header.Get("Access-Control-Allow-Methods"))

	logs := w.logged(t)
	require.Equal(t, "204 ", w.get(t, "/later").text())
	require.Eventually(t, func() bool { return strings.Contains(logs(), `"later"`) }, time.Minute, time.Millisecond)
	honoManyAtOnce(t, w)
	honoWhoMayEnter(t, w)
	honoCookies(t, w)
	honoBodies(t, w)
	honoStreams(t, w)
}

// honoManyAtOnce checks that events that wait at the same time read their own context storage.
func honoManyAtOnce(t *testing.T, w *worker) {
	answers := make([]answer, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = w.get(t, fmt.Sprint("/who?name=user", i)) })
	}
	all.Wait()
	for i, a := range answers {
		require.Equal(t, fmt.Sprintf("200 user%d user%d", i, i), a.text())
	}
}

func honoWhoMayEnter(t *testing.T, w *worker) {
	require.Equal(t, 401, w.get(t, "/admin").status)
	require.Equal(t, "200 in", w.get(t, "/admin", "Authorization", "Basic YWRhOmxvdmVsYWNl").text())
	require.Equal(t, 401, w.get(t, "/admin", "Authorization", "Basic YWRhOnguess").status)
	token := w.get(t, "/login").body
	require.JSONEq(t, `{"sub":"ada"}`, w.get(t, "/me", "Authorization", "Bearer "+token).body)
	require.Equal(t, 401, w.get(t, "/me").status)
	a := w.get(t, "/me", "Authorization", "Bearer "+token[:len(token)-3]+"AAA")
	require.Equal(t, 401, a.status)
	require.Contains(t, a.header.Get("Www-Authenticate"), "invalid_token")
}

func honoCookies(t *testing.T, w *worker) {
	a := w.get(t, "/cookies", "Cookie", "theme=light; b=%C3%A4")
	require.JSONEq(t, `{"all":{"theme":"light","b":"ä"}}`, a.body)
	set := a.header.Values("Set-Cookie")
	require.Len(t, set, 3)
	require.Equal(t, "theme=light; Max-Age=60; Path=/; HttpOnly; SameSite=Lax", set[0])
	require.Equal(t, "old=; Max-Age=0; Path=/", set[2])
	signed, _, _ := strings.Cut(set[1], ";")
	require.Equal(t, `200 {"user":"ada, l"}`, w.get(t, "/cookies/signed", "Cookie", signed).text())
	require.Equal(t, `200 {"user":false}`, w.get(t, "/cookies/signed", "Cookie", strings.Replace(signed, "ada", "eve", 1)).
		text())
}

func honoBodies(t *testing.T, w *worker) {
	const typ = "application/json"
	require.Equal(t, `201 {"ordered":3}`, w.fetch(t, "POST", "/orders", `{"count":3}`, "Content-Type", typ).text())
	require.Equal(t, `422 {"error":"count is a number"}`, w.fetch(t, "POST", "/orders", `{"count":"3"}`, "Content-Type",
		typ).text())
	require.Equal(t, "400 Malformed JSON in request body", w.fetch(t, "POST", "/orders", `{`, "Content-Type", typ).text())
	upload := func(content string) answer {
		var form bytes.Buffer
		m := multipart.NewWriter(&form)
		part, err := m.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="file"; filename="ä.txt"`}, "Content-Type": {"text/x-test"},
		})
		require.NoError(t, err)
		_, err = io.WriteString(part, content)
		require.NoError(t, err)
		require.NoError(t, m.WriteField("tag", "one"))
		require.NoError(t, m.WriteField("tag", "two"))
		require.NoError(t, m.Close())
		return w.fetch(t, "POST", "/upload", form.String(), "Content-Type", m.FormDataContentType())
	}
	require.JSONEq(t, `{"name":"ä.txt","type":"text/x-test","size":6,"text":"a\r\nb\u0000c","tags":["one","two"]}`, upload("a\r\nb\x00c").body)
	require.Equal(t, "413 too long", upload(strings.Repeat("x", 2000)).text())
}

func honoStreams(t *testing.T, w *worker) {
	require.Equal(t, "200 hi from a blob", w.get(t, "/stream").text())
	require.Equal(t, "200 line 0\nline 1\nline 2\n", w.get(t, "/text").text())
	a := w.get(t, "/sse")
	require.Equal(t, "text/event-stream", a.header.Get("Content-Type"))
	require.Equal(t, "event: tick\ndata: {\"id\":0}\nid: 0\n\nevent: tick\ndata: {\"id\":1}\nid: 1\n\n", a.body)
	a = w.get(t, "/etag")
	require.NotEmpty(t, a.header.Get("Etag"))
	require.Equal(t, "304 ", w.get(t, "/etag", "If-None-Match", a.header.Get("Etag")).text())
	a = w.get(t, "/zip", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
	z, err := gzip.NewReader(strings.NewReader(a.body))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("again and ", 500), string(text))
}

func testItty(t *testing.T, f *fleet) {
	w := f.deploy(t, "itty.js", "--var", "NAME=value")
	require.JSONEq(t, `{"id":"7","query":{"a":["1","2"],"b":"c d"}}`, w.get(t, "/v1/todos/7?a=1&a=2&b=c%20d").body)
	require.Equal(t, "200 a/b/c.txt", w.get(t, "/v1/files/a/b/c.txt").text())
	a := w.get(t, "/v1/html")
	require.Equal(t, "200 <p>hi</p>", a.text())
	require.Equal(t, "text/html", a.header.Get("Content-Type"))
	a = w.fetch(t, "POST", "/v1/todos", `{"a":1}`, "Content-Type", "application/json", "Origin", "https://app.example")
	require.Equal(t, `201 {"made":{"a":1}}`, a.text())
	require.Equal(t, "https://app.example", a.header.Get("Access-Control-Allow-Origin"))
	a = w.fetch(t, "POST", "/v1/todos", "a=1&a=2&b=%E2%82%AC", "Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, `201 {"made":[["a","1"],["a","2"],["b","€"]]}`, a.text())
	require.Equal(t, 204, w.fetch(t, "OPTIONS", "/v1/todos", "", "Origin", "https://app.example").status)
	require.JSONEq(t, `{"status":409,"error":"taken","field":"name"}`, w.get(t, "/v1/throws").body)
	require.Equal(t, http.StatusInternalServerError, w.get(t, "/v1/broken").status)
	require.Equal(t, `404 {"status":404,"error":"no such route"}`, w.get(t, "/v1/nothing").text())
	require.JSONEq(t, `{"value":"value","ctx":"function"}`, w.get(t, "/v1/env/NAME").body)
}
