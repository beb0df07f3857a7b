package e2e

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/otlptest"
)

// traced is a server that notes the traceparent of requests by their path.
type traced struct {
	*httptest.Server
	mu  sync.Mutex
	saw map[string]string
}

func openTraced(t *testing.T) *traced {
	t.Helper()
	s := &traced{saw: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.saw[r.URL.Path] = r.Header.Get("traceparent")
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *traced) parent(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent, ok := s.saw[path]
	return parent, ok
}

func privateAddresses(c *config.Config) {
	c.AllowPrivateAddresses = config.List{"127.0.0.1", "localhost"}
}

// spanNamed waits for a span of a trace, in any order.
func spanNamed(t *testing.T, c *otlptest.Collector, trace, name string) (found otlptest.Span) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range c.Spans() {
			if s.Trace == trace && s.GetName() == name {
				found = s
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "%s in %v", name, names(c))
	return found
}

func names(c *otlptest.Collector) (list []string) {
	for _, s := range c.Spans() {
		list = append(list, s.Trace[:4]+" "+s.GetName())
	}
	return list
}

// One trace leads from a publisher through a worker, its subrequests, bindings, a called worker and a task that it
// sends, to the dead letter of the task and the replay.
func TestOneTrace(t *testing.T) {
	collector := otlptest.Open(t)
	server := openTraced(t)
	h := openFleet(t, privateAddresses)
	h.deploy("acme", "auth", `import { WorkerEntrypoint } from "cloudflare:workers";
		export default class extends WorkerEntrypoint {
			who() { return "you" }
			fetch(request) { return new Response("fetched", { status: 203 }) }
		}`)
	h.deploy("acme", "later", `export default { task(event) { console.log("in later"); throw new Error("not yet"); } }`, `{"retries": {"maxAttempts": 1}}`)
	h.deploy("acme", "front", `export default { async task(event, env, ctx) {
			console.log("in front");
			await fetch("`+server.URL+`/listed?token=secret");
			await fetch("`+strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+`/other");
			await fetch("`+server.URL+`/own", { headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } });
			await new Promise((done) => { new WebSocket("`+strings.Replace(server.URL, "http:", "ws:", 1)+`/socket").onclose = done });
			await env.STORE.put("k", "v");
			await env.AUTH.who();
			await (await env.AUTH.fetch("http://x/")).text();
			await env.LATER.send({ n: 1 });
			return "done";
		} }`, `{"kv": {"STORE": "store"}, "services": {"AUTH": "auth"}, "queues": {"LATER": "later"}, "trace": {"propagate": ["127.0.0.1"]}}`)

	const trace, publisher = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	r := h.reply(h.send(events.Task, "acme/front", `{}`, "traceparent", "00-"+trace+"-"+publisher+"-01", "tracestate",
		"vendor=1"))
	require.Nil(t, r.Failure)

	// who is whose parent
	receive, front := spanNamed(t, collector, trace, "receive acme/front"), spanNamed(t, collector, trace,
		"process acme/front")
	require.Equal(t, []string{publisher, receive.ID}, []string{receive.Parent, front.Parent})
	require.Equal(t, []traces.Span_SpanKind{traces.Span_SPAN_KIND_CONSUMER, traces.Span_SPAN_KIND_CONSUMER},
		[]traces.Span_SpanKind{receive.GetKind(), front.GetKind()})
	require.LessOrEqual(t, receive.GetStartTimeUnixNano(), receive.GetEndTimeUnixNano())
	require.LessOrEqual(t, receive.GetEndTimeUnixNano(), front.GetEndTimeUnixNano())
	for _, name := range []string{"kv put", "call auth.who", "call auth", "send later"} {
		require.Equal(t, front.ID, spanNamed(t, collector, trace, name).Parent, name)
	}
	require.Equal(t, spanNamed(t, collector, trace, "call auth.who").ID, spanNamed(t, collector, trace, "acme/auth.who").
		Parent)
	called := spanNamed(t, collector, trace, "GET acme/auth")
	require.Equal(t, spanNamed(t, collector, trace, "call auth").ID, called.Parent)
	require.Equal(t, "203", called.Attributes["http.response.status_code"])
	sent := spanNamed(t, collector, trace, "send later")
	later := spanNamed(t, collector, trace, "receive acme/later")
	require.Equal(t, sent.ID, later.Parent)
	failed := spanNamed(t, collector, trace, "process acme/later")
	require.Equal(t, later.ID, failed.Parent)
	require.Equal(t, traces.Status_STATUS_CODE_ERROR, failed.GetStatus().GetCode())
	require.Equal(t, "exception", failed.Attributes["error.type"])
	require.Equal(t, later.ID, spanNamed(t, collector, trace, "settle acme/later").Parent)
	require.Equal(t, "vendor=1", later.GetTraceState())

	// only listed hosts learn of it, and a handler may say something else
	listed, ok := server.parent("/listed")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(listed, "00-"+trace+"-"), listed)
	other, ok := server.parent("/other")
	require.True(t, ok)
	require.Empty(t, other)
	own, _ := server.parent("/own")
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", own)
	sockets := 0
	for _, s := range collector.Spans() {
		if s.GetName() != "GET" {
			continue
		}
		require.Equal(t, front.ID, s.Parent)
		require.NotContains(t, s.String(), "secret", "queries have secrets")
		if strings.HasPrefix(s.Attributes["url.full"], "ws:") {
			sockets++
			continue
		}
		for _, key := range []string{"http.request.method", "server.address", "server.port", "url.full",
			"http.response.status_code", "error.type"} {
			require.Contains(t, s.Attributes, key)
		}
	}

	require.Equal(t, 1, sockets)

	// what the conventions require
	for _, s := range collector.Spans() {
		require.Equal(t, "https://opentelemetry.io/schemas/1.43.0", s.SchemaURL)
		if operation := s.Attributes["messaging.operation.type"]; operation != "" {
			require.Contains(t, []string{"receive", "process", "send", "settle"}, operation)
			require.Equal(t, "nats", s.Attributes["messaging.system"])
			require.NotEmpty(t, s.Attributes["messaging.operation.name"])
			require.NotEmpty(t, s.Attributes["messaging.destination.name"])
		}
	}
	require.Equal(t, "pinwheel", collector.Resource()["service.name"])
	require.Equal(t, inventory.Node(), collector.Resource()["service.instance.id"])

	// the replay of the dead letter
	h.settled()
	dead := h.dead()
	require.Len(t, dead, 1)
	require.Equal(t, []string{"00-" + trace + "-" + sent.ID + "-01"}, dead[0].Header["traceparent"])
	before := len(collector.Spans())
	require.NoError(t, deadletter.NewStore(h.js, events.DefaultPrefix).Replay(context.Background(), dead[0],
		deadletter.ReplayOptions{}))
	require.Eventually(t, func() bool {
		n := 0
		for _, s := range collector.Spans()[before:] {
			if s.Trace == trace && s.GetName() == "process acme/later" && s.ID != failed.ID {
				n++
			}
		}
		return n > 0
	}, patience, time.Millisecond)

	// lines and metrics
	require.Eventually(t, func() bool {
		for _, l := range collector.Lines() {
			if l.GetBody().GetStringValue() == "in front" {
				return hex.EncodeToString(l.GetTraceId()) == trace && hex.EncodeToString(l.GetSpanId()) == front.ID
			}
		}
		return false
	}, patience, time.Millisecond)
	require.Eventually(t, func() bool { return collector.Metric("pinwheel_events_total") != nil }, patience,
		time.Millisecond)
}

// What an event without a parent is sampled by, nobody but the server has written. An unsampled parent is obeyed, and a
// dead letter of a sampled event names its trace.
func TestTraceOfAnEventWithoutParent(t *testing.T) {
	collector := otlptest.Open(t)
	h := openFleet(t)
	h.deploy("acme", "w", `export default { task() { throw new Error("no") } }`, `{"retries": {"maxAttempts": 1}}`)
	require.NotNil(t,
		h.reply(h.send(events.Task, "acme/w", `{}`, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")).Failure)
	require.NotNil(t, h.reply(h.send(events.Task, "acme/w", `{}`, "traceparent", "nonsense")).Failure)
	h.settled()
	dead := h.dead()
	require.Len(t, dead, 2)
	require.Equal(t, []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}, dead[0].Header["traceparent"])
	var receive otlptest.Span
	require.Eventually(t, func() bool {
		for _, s := range collector.Spans() {
			if s.GetName() == "receive acme/w" {
				receive = s
				return true
			}
		}
		return false
	}, patience, time.Millisecond)
	require.Empty(t, receive.Parent)
	spanNamed(t, collector, receive.Trace, "settle acme/w")
	for _, s := range collector.Spans() {
		require.Equal(t, receive.Trace, s.Trace, "the parent of the other event is not sampled")
	}
}

// A collector that takes connections and never answers costs no event.
func TestStalledCollector(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	p := fleettest.Serve(t, srv.URL(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+listener.Addr().String(),
		"OTEL_BSP_SCHEDULE_DELAY=5", "PINWHEEL_TRACE_OWNER_RATE=1000000")
	h.connect(srv.URL())
	h.deploy("acme", "count", `export default { task(event) { console.log("x"); return event.payload } }`)
	replies := h.publishCounted(3000) // more than wait to be sent
	for range 3000 {
		select {
		case m := <-replies:
			require.Contains(t, string(m.Data), `"success":true`)
		case <-time.After(patience):
			t.Fatal("not answered")
		}
	}
	require.Eventually(t, func() bool { return connections.Load() > 0 }, patience, time.Millisecond)
	p.Signal(os.Interrupt)
	require.NoError(t, p.Wait())
}

// A process with a variable that it does not understand does not start.
func TestWrongTelemetrySettings(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "jaeger")
	p, err := fleet.Open(testConfig(t), zerolog.Nop())
	require.Nil(t, p)
	require.ErrorContains(t, err, `OTEL_TRACES_EXPORTER is "jaeger": it is otlp or none`)
}
