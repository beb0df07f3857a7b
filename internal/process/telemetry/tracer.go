package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// scope names the maker of the spans and lines.
const scope = "github.com/pinwheel-run/pinwheel"

// tracer makes the spans of events. It is a lifecycle.Observer.
//
// An event of the stream has one span "receive", from the time when it was stored until its first attempt starts. Its
// ids follow from what the server wrote, so every process that has the event names it alike. Attempts are below it.
type tracer struct {
	lifecycle.Unobserved

	spans   trace.Tracer
	sampler sdktrace.Sampler
	owners  perowner.Rates
}

func newTracer(provider trace.TracerProvider, cfg Config) *tracer {
	return &tracer{
		spans:   provider.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version), trace.WithSchemaURL(SchemaURL)),
		sampler: cfg.sampler, owners: perowner.Rates{PerSecond: cfg.OwnerRate, Burst: cfg.OwnerRate},
	}
}

// Delivered implements lifecycle.Observer: it decides whether spans of the event are kept.
func (t *tracer) Delivered(e *lifecycle.Delivery) {
	if e.Trace != nil || e.Service != nil { // the caller of a service has decided
		return
	}
	parent, ok := parentOf(e)
	own := ownContext(e)
	ctx := context.Background()
	if ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(parent))
		own.TraceID, own.State = parent.TraceID, parent.State
		if e.Direct() { // it has no span of its own
			own.SpanID = parent.SpanID
		}
	}
	if t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: own.TraceID,
		Kind: trace.SpanKindConsumer}).Decision != sdktrace.RecordAndSample {
		return
	}
	if _, ok := t.owners.Allow(e.Owner, time.Now()); !ok {
		return
	}
	kept := own // own stays on the stack
	kept.Sampled = true
	e.Trace = &kept
}

// parentOf is the span that the publisher names. The publisher may be anybody.
func parentOf(e *lifecycle.Delivery) (events.TraceContext, bool) {
	var parent, state string
	if e.Direct() {
		for i := 0; i+1 < len(e.HTTPHeaders); i += 2 {
			switch name := e.HTTPHeaders[i]; {
			case strings.EqualFold(name, events.HeaderTraceParent):
				parent = e.HTTPHeaders[i+1]
			case strings.EqualFold(name, events.HeaderTraceState):
				state = e.HTTPHeaders[i+1]
			}
		}
	} else if len(e.Header) > 0 {
		if named := e.Header.Fold(events.HeaderTraceParent); len(named) == 1 {
			parent, state = named[0], strings.Join(e.Header.Fold(events.HeaderTraceState), ",")
		}
	}
	if parent == "" {
		return events.TraceContext{}, false
	}
	return events.ParseTraceParent(parent, state)
}

// ownContext is the span of an event of the stream in the trace that it has without a parent. No publisher can choose
// the ids, or it could choose what is sampled. A direct event gets a random trace.
func ownContext(e *lifecycle.Delivery) (c events.TraceContext) {
	if e.Direct() {
		c.TraceID = randomTrace()
		return c
	}
	first := e.FirstStored()
	b := make([]byte, 0, 64)
	b = append(append(b, first.Stream...), 0)
	b = binary.BigEndian.AppendUint64(b, first.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Stored.UnixNano()))
	sum := sha256.Sum256(b)
	copy(c.TraceID[:], sum[:16])
	copy(c.SpanID[:], sum[16:24])
	return c
}

// Started implements lifecycle.Observer: it begins the span of an attempt.
func (t *tracer) Started(a *lifecycle.Attempt) {
	if a.Batch != nil {
		t.startBatch(a)
		return
	}
	e := a.Event
	if e == nil || e.Trace == nil {
		return
	}
	if a.Number == 1 && !e.Direct() {
		t.receive(e, a.Start)
	}
	ctx := context.WithValue(context.Background(), idsKey{}, chosen{trace: e.Trace.TraceID})
	if e.Trace.SpanID != [8]byte{} {
		ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(*e.Trace))
	}
	name, kind, attributes := attemptSpan(a)
	a.Trace = t.start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(a.Start),
		trace.WithAttributes(attributes...))
}

// startBatch begins the span of a run of a queue handler. It has a trace of its own, linked to those of its events.
func (t *tracer) startBatch(a *lifecycle.Attempt) {
	var links []trace.Link
	for _, e := range a.Batch {
		if e.Trace == nil {
			continue
		}
		if max(1, e.Attempt) == 1 {
			t.receive(e, a.Start)
		}
		links = append(links, trace.Link{SpanContext: spanContext(*e.Trace),
			Attributes: []attribute.KeyValue{semconv.MessagingMessageID(e.ID)}})
	}
	if links == nil {
		return
	}
	name, kind, attributes := attemptSpan(a)
	a.Trace = t.start(context.Background(), name, trace.WithSpanKind(kind), trace.WithTimestamp(a.Start),
		trace.WithLinks(links...), trace.WithAttributes(attributes...))
}

// receive keeps the span of an event that waited until now.
func (t *tracer) receive(e *lifecycle.Delivery, now time.Time) {
	ctx := context.WithValue(context.Background(), idsKey{}, chosen{trace: e.Trace.TraceID, span: e.Trace.SpanID})
	if parent, ok := parentOf(e); ok && parent.TraceID == e.Trace.TraceID {
		ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(parent))
	}
	begin := e.Stored
	if begin.After(now) { // by the server's clock
		begin = now
	}
	_, span := t.spans.Start(ctx, "receive "+e.Target(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(begin),
		trace.WithAttributes(messageAttributes(e, semconv.MessagingOperationTypeReceive, "receive")...))
	span.End(trace.WithTimestamp(now))
}

// Replied implements lifecycle.Observer.
func (t *tracer) Replied(r *lifecycle.Report) {
	if a, ok := r.Attempt.Trace.(*attempt); ok && r.Reply.Status != 0 {
		a.span.SetAttributes(semconv.HTTPResponseStatusCode(r.Reply.Status))
		if r.Reply.Status >= 500 {
			a.span.SetStatus(codes.Error, "")
		}
	}
}

// Ended implements lifecycle.Observer: it ends the span of an attempt, unless the attempt did not start.
func (t *tracer) Ended(r *lifecycle.Report) {
	a, ok := r.Attempt.Trace.(*attempt)
	if !ok || r.End.NotRun() {
		return
	}
	end := r.End
	a.span.SetAttributes(semconv.FaaSColdstart(!end.Warm), attribute.Float64(keyCPU, end.CPU.Seconds()))
	switch f := end.Failure; {
	case f != nil:
		a.span.SetAttributes(semconv.ErrorTypeKey.String(string(f.Reason)))
		a.span.SetStatus(codes.Error, events.Clip(f.Message, maxText))
	case end.Broken != nil:
		a.span.SetAttributes(semconv.ErrorTypeKey.String(string(end.Broken.Reason)))
		a.span.SetStatus(codes.Error, events.Clip("the body of the response broke off: "+end.Broken.Message, maxText))
	case end.Interrupted:
		a.span.SetAttributes(semconv.ErrorTypeKey.String("interrupted"))
		a.span.SetStatus(codes.Error, "the attempt was stopped, and is repeated")
	case end.Retry:
		a.span.SetAttributes(attribute.Bool(keyRetry, true))
	}
	a.span.End()
}

// Settled implements lifecycle.Observer: it keeps a span of a dead letter.
func (t *tracer) Settled(s *lifecycle.Settlement) {
	e, f := s.Event, s.Outcome.Failure
	if s.Outcome.Verdict != lifecycle.Dead || e.Trace == nil {
		return
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), spanContext(*e.Trace))
	_, span := t.spans.Start(ctx, "settle "+e.Target(), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(messageAttributes(e, semconv.MessagingOperationTypeSettle, "dead-letter")...))
	if f != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(f.Reason)))
		span.SetStatus(codes.Error, events.Clip(f.Message, maxText))
	}
	span.End()
}

func (t *tracer) start(ctx context.Context, name string, options ...trace.SpanStartOption) *attempt {
	_, span := t.spans.Start(ctx, name, options...)
	return &attempt{tracer: t, span: span}
}

// spanContext is c for the library.
func spanContext(c events.TraceContext) trace.SpanContext {
	state, _ := trace.ParseTraceState(c.State) // one that is not valid is left out
	config := trace.SpanContextConfig{TraceID: c.TraceID, SpanID: c.SpanID, TraceState: state}
	if c.Sampled {
		config.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(config)
}

// contextOf is the reverse.
func contextOf(c trace.SpanContext) events.TraceContext {
	return events.TraceContext{TraceID: c.TraceID(), SpanID: c.SpanID(), Sampled: c.IsSampled(), State: c.TraceState().
		String()}
}

// ids makes the ids of spans: those that the context names, and random ones.
type ids struct{}

type idsKey struct{}

// chosen are the ids of the next span. Zero ones are random.
type chosen struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements sdktrace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c, _ := ctx.Value(idsKey{}).(chosen)
	if !c.trace.IsValid() {
		c.trace = randomTrace()
	}
	return c.trace, g.NewSpanID(ctx, c.trace)
}

func randomTrace() (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if c, ok := ctx.Value(idsKey{}).(chosen); ok && c.span.IsValid() {
		return c.span
	}
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// methods are the request methods that spans are named by. Others are one to those who look for them: a guest may
// invent any number.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}

func knownMethod(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "_OTHER"
}
