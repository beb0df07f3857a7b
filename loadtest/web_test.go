package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/pinwheel-run/pinwheel/loadtest/webclient"
)

func shortWeb(t *testing.T, web string) *webOptions {
	t.Helper()
	path, err := pinwheelBinary()
	require.NoError(t, err)
	o := defaultWebOptions()
	o.pinwheel, o.stores = path, natstest.StoreDir(t)
	o.web, o.rounds, o.repeats, o.quiet, o.duration = web, 1, 0, 0, 100*time.Millisecond
	o.connections, o.sockets, o.owners = 4, 2*socketsOfOwner/100, []int{3}
	return o
}

// measureAll runs the whole program, and returns what it prints and its cases.
func (o *webOptions) measureAll(t *testing.T) (string, []report.Result) {
	t.Helper()
	o.JSON = filepath.Join(t.TempDir(), "web.json")
	require.NoError(t, o.check())
	cases, err := o.cases()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, o.options, cases))
	r, err := report.Read(o.JSON, curveTexts())
	require.NoError(t, err)
	return out.String(), r.Cases
}

// TestHTTPRequests asks workers of several owners in both loops.
func TestHTTPRequests(t *testing.T) {
	t.Parallel()
	o := shortWeb(t, report.WebJSON)
	o.systems, o.loads = []string{report.Ours}, []string{report.ClosedLoop, report.OpenLoop}
	out, cases := o.measureAll(t)
	require.Contains(t, out, "HTTP, json, open: POST of 1 KB of JSON")
	require.Len(t, cases, 2)
	closed, open := cases[0].Rounds[0].Metrics, cases[1].Rounds[0].Metrics
	for _, name := range []string{"requests/s", "p50 ms", "fleet MB"} {
		require.Positive(t, closed[name], name)
	}
	require.Contains(t, closed, "fleet µs/request")
	require.NotContains(t, closed, "fleet µs/event")
	require.Positive(t, open["p50 ms"])
	require.Contains(t, open, "lag p99 ms")
	require.NotContains(t, open, "requests/s", "the load sets them")
}

// TestHTTPFile compares a file of a worker with one of Go's file server.
func TestHTTPFile(t *testing.T) {
	t.Parallel()
	out, cases := shortWeb(t, report.WebFile).measureAll(t)
	require.Len(t, cases, 2)
	for _, c := range cases {
		require.Positive(t, c.Rounds[0].Metrics["requests/s"], c.Name())
	}
	require.Contains(t, out, "a file: at least 0.8 × the requests/s of Go's http.FileServer")
}

func TestHTTPIdleWebSockets(t *testing.T) {
	t.Parallel()
	out, cases := shortWeb(t, report.WebSockets).measureAll(t)
	require.Len(t, cases, 1)
	require.Positive(t, cases[0].Rounds[0].Metrics["MB without"])
	require.Contains(t, cases[0].Rounds[0].Metrics, "KB/socket")
	require.Contains(t, out, "10 WebSockets: at most 25 KB each")
	require.ErrorContains(t, enoughFiles(1<<40), "a process may open ")
}

// TestHTTPCalls compares each kind of call with a function. A wrong answer to a call ends the measurement.
func TestHTTPCalls(t *testing.T) {
	t.Parallel()
	o := shortWeb(t, report.WebCalls)
	o.systems = []string{report.Ours}
	out, cases := o.measureAll(t)
	require.Len(t, cases, len(report.Calls()))
	for _, c := range cases {
		require.Positive(t, c.Rounds[0].Metrics["p50 µs/call"], c.Name())
		for _, name := range []string{"requests/s", "fleet µs/call"} { // 0 on a machine that is busy enough
			require.Contains(t, c.Rounds[0].Metrics, name, c.Name())
		}
	}
	for _, goal := range []string{"KV get of 1 KB: p50 at most 500 µs", "service call, method: at most 60 µs over",
		"service call, fetch: at most 60 µs over"} {
		require.Contains(t, out, goal)
	}
	o.calls = []string{"d1"}
	_, err := o.cases()
	require.ErrorContains(t, err, `--call "d1": it is one of function, kv`)
}

// TestHTTPKernels has a handler compute. Its results are checked there.
func TestHTTPKernels(t *testing.T) {
	t.Parallel()
	o := shortWeb(t, report.WebKernels)
	o.systems, o.kernels = []string{report.Ours}, []string{"nbody", "regexp"}
	out, cases := o.measureAll(t)
	require.Contains(t, out, "HTTP, kernels, closed: GET, answered by a handler that computes")
	require.Len(t, cases, 2)
	for _, c := range cases {
		require.Positive(t, c.Rounds[0].Metrics["p50 ms/run"], c.Name())
		require.Contains(t, c.Rounds[0].Metrics, "fleet ms/run", c.Name())
	}
	o.kernels = []string{"quicksort"}
	_, err := o.cases()
	require.ErrorContains(t, err, `--kernel "quicksort": it is one of nbody, matrices`)
}

// TestHTTPPipe has a handler hand on a body, which must come back as it was.
func TestHTTPPipe(t *testing.T) {
	t.Parallel()
	o := shortWeb(t, report.WebPipe)
	o.systems, o.bodyMiB = []string{report.Ours, "go"}, 3
	out, cases := o.measureAll(t)
	require.Contains(t, out, "HTTP, pipe, closed: POST of a long body")
	require.Len(t, cases, 2)
	for _, c := range cases {
		require.Positive(t, c.Rounds[0].Metrics["MB/s"], c.Name())
		require.Contains(t, c.Rounds[0].Metrics, "fleet ms/GB", c.Name())
	}
}

// TestHTTPWithNode runs the handler of the peers.
func TestHTTPWithNode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Fprintln(os.Stderr, "NOT TESTED: there is no command node")
		t.Skip("NOT TESTED: there is no command node")
	}
	for _, web := range []string{report.WebJSON, report.WebKernels, report.WebPipe} {
		o := shortWeb(t, web)
		o.bodyMiB = 3
		o.systems, o.kernels = []string{"node"}, []string{"sieve"}
		_, cases := o.measureAll(t)
		require.Positive(t, cases[0].Rounds[0].Metrics["requests/s"])
	}
}

// TestHTTPFloor runs the server that does no more than hand over, which is no peer.
func TestHTTPFloor(t *testing.T) {
	t.Parallel()
	o := shortWeb(t, report.WebJSON)
	o.systems = []string{report.WebFloor}
	_, cases := o.measureAll(t)
	require.Positive(t, cases[0].Rounds[0].Metrics["requests/s"])
}

// TestHTTPWrongAnswers has a server answer request 7 wrongly, in both loops.
func TestHTTPWrongAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := r.URL.Query().Get("n")
		if n == "1000000007" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, n)
	}))
	defer s.Close()
	e := webclient.Exchange{Request: []byte("GET /?n=" + webclient.Number + " HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		Answer: []byte(webclient.Number)}
	for load, ask := range map[string]func(l *webLoad, n int) error{
		report.ClosedLoop: func(l *webLoad, n int) error { _, err := l.closed(0, n, report.NewRecorder()); return err },
		report.OpenLoop: func(l *webLoad, n int) error {
			return l.open(t.Context(), 1000, n, report.NewRecorder(), report.NewRecorder())
		},
	} {
		t.Run(load, func(t *testing.T) {
			l := &webLoad{owners: 2, patience: time.Minute}
			defer l.close()
			for range 2 {
				conn, err := webclient.Dial(t.Context(), s.Listener.Addr().String(), e)
				require.NoError(t, err)
				l.conns = append(l.conns, &webConn{conn, make(chan time.Time, 1)})
			}
			require.NoError(t, ask(l, 6))
			l.first = 6
			require.ErrorContains(t, ask(l, 10), `status 503 and body "1000000007": it must be 200 and "1000000007"`)
		})
	}
}

func TestHTTPOptions(t *testing.T) {
	t.Parallel()
	o := defaultWebOptions()
	require.NoError(t, o.check())
	cases, err := o.cases()
	require.NoError(t, err)
	require.Len(t, cases, 18, "six systems, three numbers of owners")
	o.systems = []string{report.Ours, "go"}
	_, err = o.cases()
	require.ErrorContains(t, err, `--system "go": for --case json it is one of pinwheel, workerd, deno, bun, node, floor`)
	for want, change := range map[string]func(o *webOptions){
		`--case "xml": it is one of json, file, websockets`: func(o *webOptions) { o.web = "xml" },
		"--connections 0: it is 1 to 5000":                  func(o *webOptions) { o.connections = 0 },
		"--owners 0: it is 1 to 5000":                       func(o *webOptions) { o.owners = []int{0} },
		`--load "saturation": it is closed or open`:         func(o *webOptions) { o.loads = []string{report.Saturation} },
		"--body-mib 1025: it is 1 to 1024":                  func(o *webOptions) { o.bodyMiB = 1025 },
		"--duration 0s: it is 100ms to 1h":                  func(o *webOptions) { o.duration = 0 },
	} {
		o := defaultWebOptions()
		change(o)
		require.ErrorContains(t, o.check(), want)
	}
}

// Systems that are not installed are an error before anything is measured.
func TestHTTPMissingSystems(t *testing.T) {
	t.Parallel()
	r := openTest(t, false)
	r.peerDir = t.TempDir()
	o := defaultWebOptions()
	o.systems = []string{report.Ours, "workerd", "bun"}
	cases, err := o.cases()
	require.NoError(t, err)
	err = r.missingSystems(t.Context(), cases)
	require.ErrorContains(t, err, "workerd needs its package of npm\nbun needs its package of npm\ninstall them with: npm install --prefix loadtest/peers")
	cases[1].System, cases[2].System = report.Ours, report.Ours
	require.NoError(t, r.missingSystems(t.Context(), cases[:3]))
}

// Each owner has a service of workerd with a text of its own. Several are behind the router.
func TestWorkerdConfiguration(t *testing.T) {
	t.Parallel()
	site := webSite{dir: t.TempDir(), port: "1234", owners: 2, handler: "web"}
	require.NoError(t, configureWorkerd(site))
	text, err := os.ReadFile(filepath.Join(site.dir, workerdConfig))
	require.NoError(t, err)
	for _, want := range []string{
		`(name = "web--o0001", worker = (modules = [(name = "worker", esModule = embed "web--o0001.mjs")]`, `(name = "web--o0001", service = "web--o0001")`,
		`address = "127.0.0.1:1234", http = (), service = "router"`,
	} {
		require.Contains(t, string(text), want)
	}
	code, err := os.ReadFile(filepath.Join(site.dir, "web--o0001.mjs"))
	require.NoError(t, err)
	require.Contains(t, string(code), "// web--o0001\n// Reads an order")

	site.owners = 1
	require.NoError(t, configureWorkerd(site))
	text, err = os.ReadFile(filepath.Join(site.dir, workerdConfig))
	require.NoError(t, err)
	require.NotContains(t, string(text), "router")
	require.Contains(t, string(text), `service = "web--o0000"`)
}
