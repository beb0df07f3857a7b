package compat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// fleet is a fleet with a client to it.
type fleet struct {
	*fleettest.Fleet
	*client.Client
	dir  string
	mode workers.Mode // mode of the deployed workers; "" = as the manifest says
}

// TestPackages deploys one worker for each package. It sends each worker events over NATS, in a mode with one event at
// a time in a context, and in one with many.
func TestPackages(t *testing.T) {
	t.Parallel()
	all := startFleet(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"hono", testHono}, {"itty-router", testItty}, {"jose", testJose}, {"zod", testZod}, {"ids", testIDs},
		{"clients", testClients},
		{"hashes", testHashes}, {"csv", testCSV}, {"markdown", testMarkdown}, {"preact", testPreact},
		{"graphql", testGraphQL}, {"yoga", testYoga},
		{"dates", testDates}, {"browser-maps", testBrowserMaps}, {"auth", testAuth},
	} {
		for _, mode := range []workers.Mode{workers.Pinned, workers.Persistent} {
			t.Run(test.name+"/"+string(mode), func(t *testing.T) {
				in := *all
				in.mode = mode
				test.run(t, &in)
			})
		}
	}
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	dir := packages(t)
	f := fleettest.Start(t, func(c *config.Config) { c.AllowPrivateAddresses = config.List{"127.0.0.1"} })
	c, err := client.New(f.NC)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return &fleet{f, c, dir, ""}
}

// deploy deploys testdata/file as pinwheel deploy does. The worker has the name of the file.
func (f *fleet) deploy(t *testing.T, file string, args ...string) *worker {
	t.Helper()
	if f.mode != "" {
		f.setManifest(t, strings.TrimSuffix(file, filepath.Ext(file))+bundle.ManifestSuffix)
	}
	f.Deploy(t, append([]string{filepath.Join(f.dir, file), "--owner", "npm"}, args...)...)
	w := &worker{f, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
	if f.mode != "" {
		require.Contains(t, f.Pinwheel("workers", "show", "npm/"+w.name).Out, string(f.mode))
	}
	return w
}

// setManifest writes the mode into the manifest, which it creates if needed. The test checks what the package does, not
// how long it takes. So the limit of CPU time is enough for a slow machine.
func (f *fleet) setManifest(t *testing.T, file string) {
	t.Helper()
	manifest := map[string]any{}
	text, err := os.ReadFile(filepath.Join(f.dir, file))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	} else if os.IsNotExist(err) {
		err = nil
	}
	require.NoError(t, err)
	manifest["mode"] = f.mode
	if manifest["limits"] == nil {
		manifest["limits"] = workers.Limits{CPU: workers.Millis(5 * time.Second)}
	}
	text, err = json.Marshal(manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, file), text, 0o600))
}

// worker is a deployed worker.
type worker struct {
	f    *fleet
	name string
}

func (w *worker) request(kind events.Kind) client.Request {
	return client.Request{Kind: kind, Owner: "npm", Worker: w.name}
}

// answer is the response to a fetch event.
type answer struct {
	status int
	header http.Header
	body   string
}

// text returns the status and the body.
func (a answer) text() string { return strconv.Itoa(a.status) + " " + a.body }

// fetch sends a request; headers are name, value, name, value …
func (w *worker) fetch(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := w.request(events.Fetch)
	r.Method, r.URL, r.HTTPHeader = method, url, http.Header{}
	if body != "" {
		r.Body = []byte(body)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.HTTPHeader.Add(headers[i], headers[i+1])
	}
	reply, stream, err := w.f.Open(ctx, r)
	require.NoError(t, err, "%s %s", method, url)
	defer func() { require.NoError(t, stream.Close()) }()
	text, err := io.ReadAll(stream)
	require.NoError(t, err, "%s %s", method, url)
	a := answer{reply.Status, http.Header{}, string(text)}
	for i := 0; i+1 < len(reply.Headers); i += 2 {
		a.header.Add(reply.Headers[i], reply.Headers[i+1])
	}
	return a
}

func (w *worker) get(t *testing.T, url string, headers ...string) answer {
	t.Helper()
	return w.fetch(t, "GET", url, "", headers...)
}

// run sends a task or scheduled event and decodes the data of its result.
func (w *worker) run(t *testing.T, r client.Request, data any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reply, err := w.f.Call(ctx, r)
	require.NoError(t, err)
	var result struct {
		Success bool
		Data    json.RawMessage
	}
	require.NoError(t, json.Unmarshal(reply.Body, &result), "%s", reply.Body)
	require.True(t, result.Success, "%s", reply.Body)
	require.NoError(t, json.Unmarshal(result.Data, data), "%s", reply.Body)
}

// task does what run does for a task, with payload as JSON.
func (w *worker) task(t *testing.T, payload, data any) {
	t.Helper()
	r := w.request(events.Task)
	var err error
	r.Body, err = json.Marshal(payload)
	require.NoError(t, err)
	r.ContentType = "application/json"
	w.run(t, r, data)
}

// logged collects the log lines of a worker, from now on.
func (w *worker) logged(t *testing.T) func() string {
	t.Helper()
	var lines strings.Builder
	sub, err := w.f.NC.SubscribeSync("pinwheel.logs.npm." + w.name)
	require.NoError(t, err)
	require.NoError(t, w.f.NC.Flush())
	return func() string {
		for {
			m, err := sub.NextMsg(10 * time.Millisecond)
			if err != nil {
				return lines.String()
			}
			lines.Write(m.Data)
		}
	}
}
