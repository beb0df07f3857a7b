package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/test/otlptest"
)

const (
	parentID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unwanted = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, c := range map[string]struct {
		env  []string
		want [3]bool
		err  string
	}{
		"nothing":     {},
		"an endpoint": {env: []string{endpoint, "http://c:4318"}, want: [3]bool{true, true, true}},
		"disabled":    {env: []string{endpoint, "http://c:4318", "OTEL_SDK_DISABLED", "TRUE"}},
		"one endpoint": {env: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/v1/traces"},
			want: [3]bool{true, false, false}},
		"one exporter": {env: []string{"OTEL_LOGS_EXPORTER", "otlp"}, want: [3]bool{false, true, false}},
		"all but one": {env: []string{endpoint, "http://c:4318", "OTEL_METRICS_EXPORTER", "none"},
			want: [3]bool{true, true, false}},
		"another exporter": {env: []string{"OTEL_METRICS_EXPORTER", "prometheus"},
			err: `OTEL_METRICS_EXPORTER is "prometheus": it is otlp or none`},
		"no URL": {env: []string{endpoint, "collector:4317"}, err: `OTEL_EXPORTER_OTLP_ENDPOINT is "collector:4317": it is a URL like http://collector:4318`},
		"gRPC": {env: []string{endpoint, "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
			err: `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": it is http/protobuf`},
		"gRPC of no one": {env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}},
		"a sampler":      {env: []string{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.01"}},
		"no sampler":     {env: []string{"OTEL_TRACES_SAMPLER", "jaeger_remote"}, err: `OTEL_TRACES_SAMPLER is "jaeger_remote": it is one of always_on`},
		"too much": {env: []string{"OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2"},
			err: `OTEL_TRACES_SAMPLER_ARG is "2": it is a number from 0 to 1`},
		"not a number, twice": {env: []string{"OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "NaN",
			"OTEL_LOGS_EXPORTER", "x"}, err: `OTEL_LOGS_EXPORTER is "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Read(environment(c.env...))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, [3]bool{s.Traces, s.Logs, s.Metrics})
			require.Equal(t, c.want != [3]bool{}, s.Any())
		})
	}
}

// bench is a tracer whose spans are kept here.
func openTracer(t testing.TB, rate int, env ...string) (*tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	s, err := Read(environment(env...))
	require.NoError(t, err)
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return newTracer(provider, Config{Settings: s, OwnerRate: rate}), kept
}

func event(seq uint64, header ...string) *lifecycle.Delivery {
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "acme", Worker: "w", ID: "e",
		Stored: time.Unix(1000, int64(seq)), Origin: events.Origin{Stream: events.StreamEvents,
			Seq: seq}, Header: events.Header{}}, Runs: events.Runs{Attempt: 1}}
	for i := 0; i+1 < len(header); i += 2 {
		e.Header[header[i]] = append(e.Header[header[i]], header[i+1])
	}
	return e
}

// What a publisher may write (its id, its body) does not change whether its event is sampled; what the server writes
// does. Every process decides alike.
func TestSamplingDependsOnTheServer(t *testing.T) {
	t.Parallel()
	env := []string{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.1"}
	one, _ := openTracer(t, 1_000_000, env...)
	other, _ := openTracer(t, 1_000_000, env...)
	sampled := 0
	for seq := range uint64(5000) {
		e, again := event(seq), event(seq)
		again.ID, again.Body, again.Attempt = fmt.Sprint("chosen", seq), []byte("x"), 3
		again.First, again.Origin = events.Stored{Stream: events.StreamEvents,
			Seq: seq}, events.Origin{Stream: events.StreamParked, Seq: 7}
		one.Delivered(e)
		other.Delivered(again)
		require.Equal(t, e.Trace, again.Trace)
		if e.Trace != nil {
			sampled++
		}
	}
	require.InDelta(t, 500, sampled, 150)
}

func TestParentDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sampler string
		header  []string
		sampled bool
	}{
		"wanted":              {"parentbased_always_off", []string{"traceparent", parentID}, true},
		"wanted in any case":  {"parentbased_always_off", []string{"Traceparent", parentID}, true},
		"not wanted":          {"parentbased_always_on", []string{"traceparent", unwanted}, false},
		"named twice":         {"parentbased_always_off", []string{"traceparent", parentID, "TraceParent", parentID}, false},
		"nonsense":            {"parentbased_always_off", []string{"traceparent", parentID[:54]}, false},
		"none":                {"parentbased_always_on", nil, true},
		"it is not asked":     {"always_off", []string{"traceparent", parentID}, false},
		"it is not asked, on": {"always_on", []string{"traceparent", unwanted}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, _ := openTracer(t, 10, "OTEL_TRACES_SAMPLER", c.sampler)
			e := event(1, c.header...)
			tr.Delivered(e)
			require.Equal(t, c.sampled, e.Trace != nil)
			if c.sampled && c.header != nil {
				require.Equal(t, parentID[3:35], e.Trace.Parent()[3:35])
			}
		})
	}
}

// Publishers that want all of their events traced get as many as an owner may have, and other owners theirs.
func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	tr, _ := openTracer(t, 5)
	traced := map[string]int{}
	for seq := range uint64(1000) {
		for _, owner := range []string{"loud", "quiet"}[:1+min(1, seq%300/299)] {
			e := event(seq, "traceparent", parentID)
			e.Owner = owner
			if tr.Delivered(e); e.Trace != nil {
				traced[owner]++
			}
		}
	}
	require.Equal(t, 3, traced["quiet"])
	require.GreaterOrEqual(t, traced["loud"], 5)
	require.Less(t, traced["loud"], 500)

	// owners that only publishers name take no memory for ever
	for i := range 3 * perowner.MostRates {
		tr.owners.Allow(fmt.Sprint("o", i), time.Now())
	}
	require.LessOrEqual(t, tr.owners.Len(), perowner.MostRates)
}

// An event of which no spans are kept costs no allocation, unless it has a parent.
func TestUnsampledEventsCostNoAllocation(t *testing.T) {
	tr, _ := openTracer(t, 10, "OTEL_TRACES_SAMPLER", "parentbased_always_off")
	e := event(1, "X-Other", "1")
	a := &lifecycle.Attempt{Event: e, Worker: &workers.Worker{}, Number: 1}
	report := lifecycle.Report{Attempt: a, Reply: &events.Reply{}, End: &lifecycle.End{Started: true}}
	settlement := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Dead}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tr.Delivered(e)
		tr.Queued(e)
		tr.Started(a)
		tr.Replied(&report)
		tr.Ended(&report)
		tr.Settled(&settlement)
	}))
}

// A batch is linked to its events, and each event has waited in a span of its own.
func TestBatchIsLinked(t *testing.T) {
	t.Parallel()
	tr, kept := openTracer(t, 10)
	batch := []*lifecycle.Delivery{event(1, "traceparent", parentID), event(2, "traceparent", unwanted), event(3)}
	for _, e := range batch {
		tr.Delivered(e)
	}
	a := &lifecycle.Attempt{Event: batch[0], Batch: batch, Worker: &workers.Worker{}, Number: 1, Start: time.Unix(1001, 0)}
	tr.Started(a)
	tr.Ended(&lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true}})
	spans := kept.GetSpans()
	require.Len(t, spans, 3)
	run := spans[2]
	require.Equal(t, "process acme/w", run.Name)
	require.False(t, run.Parent.IsValid())
	require.Len(t, run.Links, 2)
	require.Equal(t, spans[0].SpanContext.SpanID(), run.Links[0].SpanContext.SpanID())
	require.Equal(t, spans[1].SpanContext.SpanID(), run.Links[1].SpanContext.SpanID())
}

// A retry has a span beside the first attempt's, and what was not started has none.
func TestAttempts(t *testing.T) {
	t.Parallel()
	tr, kept := openTracer(t, 10)
	e := event(1)
	tr.Delivered(e)
	for _, c := range []struct {
		number int
		end    lifecycle.End
	}{
		{1, lifecycle.End{Interrupted: true}},
		{1, lifecycle.End{Started: true, Failure: events.NewFailure(events.ReasonCPU, strings.Repeat("ü", 500), "")}},
		{2, lifecycle.End{Started: true, Retry: true}},
		{3, lifecycle.End{Started: true, Interrupted: true}},
		{4, lifecycle.End{Started: true, Broken: events.NewFailure(events.ReasonException, "no more", "")}},
	} {
		a := &lifecycle.Attempt{Event: e, Worker: &workers.Worker{Owner: "acme", Name: "w"}, Number: c.number,
			Start: time.Unix(1001, 0)}
		tr.Started(a)
		tr.Ended(&lifecycle.Report{Attempt: a, End: &c.end})
	}
	var attempts []tracetest.SpanStub
	for _, s := range kept.GetSpans() {
		if strings.HasPrefix(s.Name, "process") {
			attempts = append(attempts, s)
		}
		if strings.HasPrefix(s.Name, "receive") { // it is the same span, twice
			require.Equal(t, trace.SpanID(e.Trace.SpanID), s.SpanContext.SpanID())
		}
	}
	require.Len(t, attempts, 4)
	require.Equal(t, "the body of the response broke off: no more", attempts[3].Status.Description)
	for _, s := range attempts {
		require.Equal(t, trace.SpanID(e.Trace.SpanID), s.Parent.SpanID())
	}
	require.Len(t, attempts[0].Status.Description, maxText)
}

// What a guest does a thousand times keeps a bounded number of spans, and its texts are cut.
func TestOperationsAreBounded(t *testing.T) {
	t.Parallel()
	tr, kept := openTracer(t, 10)
	e := event(1)
	tr.Delivered(e)
	a := &lifecycle.Attempt{Event: e, Worker: &workers.Worker{}, Number: 2}
	tr.Started(a)
	for range 1000 {
		span := a.Begin(lifecycle.Operation{Kind: lifecycle.Subrequest, Method: strings.Repeat("M", 10_000),
			Target: "http://user:password@h/" + strings.Repeat("p", 10_000) + "?q#f"})
		lifecycle.EndSpan(span, context.Canceled)
		lifecycle.EndSpan(span, nil)
	}
	require.Len(t, kept.GetSpans(), maxOperations)
	for _, s := range kept.GetSpans() {
		require.Equal(t, "_OTHER", s.Name)
		for _, attribute := range s.Attributes {
			require.LessOrEqual(t, len(attribute.Value.String()), maxText)
			require.NotContains(t, attribute.Value.String(), "password")
		}
	}
}

// What is sent comes from the variables, and ends with Close.
func TestOpen(t *testing.T) {
	c := otlptest.Open(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	s, err := Read(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}[name]
	})
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "x_total"}, func() float64 { return 7 }))
	tel, err := Open(t.Context(), Config{Settings: s, Version: "v1", Node: "n", OwnerRate: 10, Gatherer: reg,
		Log: zerolog.Nop()})
	require.NoError(t, err)
	var all lifecycle.Observers
	tel.Observe(&all)
	require.Len(t, all.All(), 1)
	e := event(1)
	a := &lifecycle.Attempt{Event: e, Worker: &workers.Worker{}, Number: 1, Start: time.Now()}
	for _, o := range all.All() {
		o.Delivered(e)
		o.Started(a)
	}
	line := events.LogLine{Time: time.Now(), Owner: "acme", Worker: "w", Level: "error", Text: strings.Repeat("ü", 10_000),
		EventID: "e"}
	line.SetTrace(a.Trace.Context())
	tel.Log(&line)
	all.All()[0].Ended(&lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true}})
	tel.Close()
	require.Len(t, c.Spans(), 2)
	require.Equal(t, "test", c.Resource()["deployment.environment.name"])
	require.Equal(t, []string{"pinwheel", "v1", "n"},
		[]string{c.Resource()["service.name"], c.Resource()["service.version"], c.Resource()["service.instance.id"]})
	require.Len(t, c.Lines(), 1)
	id := a.Trace.Context().TraceID
	require.Equal(t, id[:], c.Lines()[0].GetTraceId())
	require.Len(t, c.Lines()[0].GetBody().GetStringValue(), maxLogText)
	require.InDelta(t, 7, c.Metric("x_total").GetSum().GetDataPoints()[0].GetAsDouble(), 0)

	var none *Telemetry
	none.Log(&line)
	none.Observe(&all)
	none.Close()
}

// Protocol Buffers refuse a text that is not UTF-8, and with it the whole batch. An owner must not do that to others.
func TestTextsThatAreNoUTF8(t *testing.T) {
	c := otlptest.Open(t)
	s, err := Read(func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}[name] })
	require.NoError(t, err)
	tel, err := Open(t.Context(), Config{Settings: s, OwnerRate: 10, Gatherer: prometheus.NewRegistry(),
		Log: zerolog.Nop()})
	require.NoError(t, err)
	bad, good := event(1), event(2)
	bad.Kind, bad.Method, bad.URL = events.Fetch, "GET", "http://a%ff/%ff"
	for _, e := range []*lifecycle.Delivery{bad, good} {
		tel.tracer.Delivered(e)
		a := &lifecycle.Attempt{Event: e, Worker: &workers.Worker{}, Number: 1, Start: time.Now()}
		tel.tracer.Started(a)
		lifecycle.EndSpan(a.Begin(lifecycle.Operation{Kind: lifecycle.BindingCall, Method: "\xff", Target: "\xff"}),
			errors.New("\xff"))
		tel.tracer.Ended(&lifecycle.Report{Attempt: a,
			End: &lifecycle.End{Started: true, Failure: &events.Failure{Message: "\xff"}}})
		tel.Log(&events.LogLine{Time: time.Now(), Text: "\xff", Stack: "\xff"})
	}
	tel.Close()
	require.Len(t, c.Spans(), 6)
	require.Len(t, c.Lines(), 2)
}

// FuzzTraceParent compares with the library.
func FuzzTraceParent(f *testing.F) {
	for _, s := range []string{parentID, unwanted, "cc" + parentID[2:] + "-what", "ff" + parentID[2:],
		"00-" + strings.Repeat("0", 32) + parentID[35:], strings.ToUpper(parentID), ""} {
		f.Add(s, "a=b")
	}
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, ok := events.ParseTraceParent(parent, state)
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent})
		want := trace.SpanContextFromContext(ctx)
		if ok && parent[53:55] > "01" && !want.IsValid() {
			return // the library refuses flags that it does not know; the specification ignores them
		}
		require.Equal(t, want.IsValid(), ok, "%q", parent)
		if ok {
			require.Equal(t, []any{[16]byte(want.TraceID()), [8]byte(want.SpanID()), want.IsSampled()},
				[]any{c.TraceID, c.SpanID, c.Sampled})
			again, ok := events.ParseTraceParent(c.Parent(), c.State)
			require.True(t, ok)
			require.Equal(t, c, again)
			spanContext(c)
		}
	})
}
