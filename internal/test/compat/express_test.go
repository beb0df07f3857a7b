package compat_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An app of express answers fetch events, and clients over node:http speak to a server.
func TestExpress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, r.Method+" "+r.Header.Get("X-From")+" "+string(body))
		_ = z.Close()
	}))
	t.Cleanup(s.Close)
	w := startFleet(t).deploy(t, "express.js")
	a := w.get(t, "http://w.test/hello/ada?greeting=there")
	require.Equal(t, "200 hello ada there http w.test", a.text())
	require.Equal(t, "yes", a.header.Get("X-First"))
	require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"))
	again := w.get(t, "http://w.test/hello/ada?greeting=there", "If-None-Match", a.header.Get("Etag"))
	require.Equal(t, "304 ", again.text())
	a = w.fetch(t, "POST", "http://w.test/json", `{"a":[1,"ä"]}`, "Content-Type", "application/json")
	require.Equal(t, 201, a.status)
	require.JSONEq(t, `{"got":{"a":[1,"ä"]},"type":"application/json","ip":"undefined"}`, a.body)
	a = w.fetch(t, "POST", "http://w.test/json", `{"a":`, "Content-Type", "application/json")
	require.Equal(t, 400, a.status, a.body)
	a = w.fetch(t, "POST", "http://w.test/form", `a=1&b[c]=2`, "Content-Type",
		"application/x-www-form-urlencoded")
	require.Equal(t, `200 {"a":"1","b":{"c":"2"}}`, a.text())
	require.Equal(t, "a=b%20c; Path=/", a.header.Get("Set-Cookie"))
	a = w.get(t, "http://w.test/away")
	require.Equal(t, 303, a.status)
	require.Equal(t, "/hello/you", a.header.Get("Location"))
	require.Equal(t, "200 line 0\nline 1\nline 2\n", w.get(t, "http://w.test/lines").text())
	require.Len(t, w.get(t, "http://w.test/large").body, 1_000_000)
	require.Equal(t, 404, w.get(t, "http://w.test/nowhere").status)
	require.Equal(t, 500, w.get(t, "http://w.test/broken").status)
	require.Equal(t, "418  mine", w.get(t, "http://w.test/later").text())
	require.Equal(t, "200 GET express ", w.get(t, "http://w.test/client?url="+s.URL).text())
	require.Equal(t, "500 ENOTFOUND getaddrinfo ENOTFOUND nobody.invalid", w.get(t, "http://w.test/client?url=http://nobody.invalid").text())
	require.Equal(t, `200 [200,"POST node-fetch sent","text/plain"]`, w.get(t, "http://w.test/node-fetch?url="+s.URL).text())
}
