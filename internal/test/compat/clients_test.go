package compat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// upstream is the server that the clients call. /flaky/NAME fails twice.
func upstream(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "query": r.URL.Query(), "client": r.Header.Get("X-Client"), "hook": r.Header.Get("X-Hook"),
			"type": r.Header.Get("Content-Type"), "body": string(body),
		})
	})
	var mu sync.Mutex
	failed := map[string]int{}
	mux.HandleFunc("/flaky/{name}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		name := r.PathValue("name")
		if failed[name]++; failed[name] <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, "at last after %d", failed[name]-1)
	})
	mux.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"none"}`)
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 300_000)) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func testClients(t *testing.T, f *fleet) {
	w := f.deploy(t, "clients.ts")
	var got struct{ Ky, Ofetch map[string]any }
	w.task(t, map[string]any{"base": upstream(t)}, &got)
	require.Equal(t, map[string]any{
		"echo": map[string]any{
			"method": "POST", "query": map[string]any{"q": []any{"ä b"}}, "client": "ky", "hook": "1",
			"type": "application/json", "body": `{"a":1}`,
		},
		"flaky": "at last after 2", "form": "multipart/form-data", "missing": "HTTPError 404", "slow": "TimeoutError",
		"gone": "AbortError",
		"seen": []any{"200", "503", "retry 1", "503", "retry 2", "200", "200", "404"},
	}, got.Ky)
	require.Equal(t, map[string]any{
		"echo": map[string]any{
			"method": "PUT", "query": map[string]any{"q": []any{"x", "y"}}, "client": "ofetch", "hook": "",
			"type": "application/json", "body": `{"b":[2]}`,
		},
		"flaky": "at last after 2", "missing": map[string]any{"status": 404.0, "data": map[string]any{"error": "none"},
			"text": "Not Found"},
		"blob": 300000.0, "stream": 300000.0, "slow": "FetchError", "seen": []any{"200", "503", "503", "200", "404", "200",
			"200"},
	}, got.Ofetch)
}
