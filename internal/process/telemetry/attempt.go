package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// maxOperations is how many spans are kept below that of one attempt.
const maxOperations = 128

// attempt is the span of an attempt. It implements lifecycle.Trace.
type attempt struct {
	tracer *tracer
	span   trace.Span
	begun  atomic.Int32
}

// Context implements lifecycle.Trace.
func (a *attempt) Context() events.TraceContext { return contextOf(a.span.SpanContext()) }

// Begin implements lifecycle.Trace.
func (a *attempt) Begin(op lifecycle.Operation) lifecycle.Span {
	if a.begun.Add(1) > maxOperations {
		return nil
	}
	name, kind, attributes := operationSpan(op)
	_, span := a.tracer.spans.Start(trace.ContextWithSpan(context.Background(), a.span), name, trace.WithSpanKind(kind),
		trace.WithAttributes(attributes...))
	return &operation{span: span, client: kind == trace.SpanKindClient}
}

// Record implements lifecycle.Trace.
func (a *attempt) Record(op lifecycle.Operation, was lifecycle.Past) {
	if a.begun.Add(1) > maxOperations {
		return
	}
	name, kind, attributes := operationSpan(op)
	ctx := context.WithValue(trace.ContextWithSpan(context.Background(), a.span), idsKey{}, chosen{span: was.ID})
	_, span := a.tracer.spans.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...),
		trace.WithTimestamp(was.Began))
	o := &operation{span: span, client: kind == trace.SpanKindClient}
	if was.Status != 0 {
		o.Status(was.Status)
	}
	if was.Error != "" {
		o.failed(was.Error)
	}
	span.End(trace.WithTimestamp(was.Ended))
}

// operation is a span of something that an attempt does. It implements lifecycle.Span.
type operation struct {
	span   trace.Span
	client bool
	once   sync.Once
}

// Context implements lifecycle.Span.
func (o *operation) Context() events.TraceContext { return contextOf(o.span.SpanContext()) }

// Status implements lifecycle.Span.
func (o *operation) Status(status int) {
	o.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	if status >= 400 { // a client's span fails with both classes
		o.span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		o.span.SetStatus(codes.Error, "")
	}
}

// End implements lifecycle.Span.
func (o *operation) End(err error) {
	o.once.Do(func() {
		if err != nil {
			o.failed(err.Error())
		}
		o.span.End()
	})
}

func (o *operation) failed(why string) {
	o.span.SetAttributes(semconv.ErrorTypeOther)
	o.span.SetStatus(codes.Error, events.Clip(why, maxText))
}

// Attributes that no convention has.
const (
	keyOwner   = "pinwheel.owner"
	keyWorker  = "pinwheel.worker"
	keyVersion = "pinwheel.version"
	keyKind    = "pinwheel.event.kind"
	keyEventID = "pinwheel.event.id"
	keyAttempt = "pinwheel.attempt"
	keyStream  = "pinwheel.stream"
	keySeq     = "pinwheel.stream.sequence"
	keyCPU     = "pinwheel.cpu"
	keyRetry   = "pinwheel.retry"
	keyBinding = "pinwheel.binding"
	keyMethod  = "pinwheel.method"
)

// system is the value of messaging.system.
const system = "nats"

// maxText is the longest text of an attribute that a guest or a publisher wrote, bytes. Such a text goes through
// events.Clip: Protocol Buffers refuse what is not UTF-8, and with it the spans of all owners in the batch.
const maxText = 256

func worker(owner, name, version string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(keyOwner, owner), attribute.String(keyWorker, name), attribute.String(keyVersion, version),
		semconv.FaaSName(owner + "/" + name), semconv.FaaSVersion(version),
	}
}

// messageAttributes are those of an event of the stream.
func messageAttributes(e *lifecycle.Delivery, operation attribute.KeyValue, name string) []attribute.KeyValue {
	first := e.FirstStored()
	return []attribute.KeyValue{
		semconv.MessagingSystemKey.String(system), operation, semconv.MessagingOperationName(name),
		semconv.MessagingDestinationName(e.Target()), semconv.MessagingMessageID(e.ID),
		semconv.MessagingMessageBodySize(len(e.Body)),
		attribute.String(keyOwner, e.Owner), attribute.String(keyWorker, e.Worker),
		attribute.String(keyKind, e.Kind.String()),
		attribute.String(keyStream, first.Stream), attribute.Int64(keySeq, int64(first.Seq)),
	}
}

// attemptSpan is the name, the kind and the attributes of the span of an attempt.
func attemptSpan(a *lifecycle.Attempt) (name string, kind trace.SpanKind, attributes []attribute.KeyValue) {
	e := a.Event
	attributes = append(worker(e.Owner, e.Worker, a.Worker.Version), attribute.Int(keyAttempt, a.Number))
	switch {
	case e.Service != nil && e.Service.Method != "":
		return e.Target() + "." + events.Clip(e.Service.Method, maxText), trace.SpanKindServer,
			append(attributes, attribute.String(keyMethod, events.Clip(e.Service.Method, maxText)), semconv.FaaSTriggerOther)
	case e.Direct():
		attributes = append(attributes, semconv.FaaSTriggerHTTP, semconv.HTTPRequestMethodKey.String(knownMethod(e.Method)),
			attribute.String(keyEventID, e.ID))
		return knownMethod(e.Method) + " " + e.Target(), trace.SpanKindServer, append(attributes, address(e.URL, true)...)
	}
	attributes = append(attributes, messageAttributes(e, semconv.MessagingOperationTypeProcess, "process")...)
	if a.Batch != nil {
		attributes = append(attributes, semconv.MessagingBatchMessageCount(len(a.Batch)))
	}
	switch e.Kind {
	case events.Scheduled:
		attributes = append(attributes, semconv.FaaSTriggerTimer)
	case events.Fetch:
		attributes = append(attributes, semconv.FaaSTriggerPubSub, semconv.HTTPRequestMethodKey.String(knownMethod(e.Method)))
		attributes = append(attributes, address(e.URL, true)...)
	default:
		attributes = append(attributes, semconv.FaaSTriggerPubSub)
	}
	return "process " + e.Target(), trace.SpanKindConsumer, attributes
}

// operationSpan is the same of something that an attempt does.
func operationSpan(op lifecycle.Operation) (name string, kind trace.SpanKind, attributes []attribute.KeyValue) {
	method, target := events.Clip(op.Method, maxText), events.Clip(op.Target, maxText)
	switch op.Kind {
	case lifecycle.Subrequest:
		name = knownMethod(op.Method)
		return name, trace.SpanKindClient, append(address(op.Target, false), semconv.HTTPRequestMethodKey.String(name))
	case lifecycle.FileRequest:
		return "files " + knownMethod(op.Method), trace.SpanKindInternal,
			[]attribute.KeyValue{attribute.String(keyBinding, target)}
	case lifecycle.ServiceUse:
		name = "call " + op.To
		if method != "" {
			name += "." + method
		}
		return name, trace.SpanKindClient, []attribute.KeyValue{attribute.String(keyBinding, target),
			attribute.String(keyMethod, method), semconv.FaaSInvokedName(op.To)}
	case lifecycle.SendTasks:
		return "send " + op.To, trace.SpanKindProducer, []attribute.KeyValue{
			semconv.MessagingSystemKey.String(system), semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("send"),
			semconv.MessagingDestinationName(op.To), semconv.MessagingBatchMessageCount(op.Count),
			semconv.MessagingMessageBodySize(op.Size),
		}
	case lifecycle.BindingCall:
	}
	return fmt.Sprintf("%s %s", op.Binding, method), trace.SpanKindClient,
		[]attribute.KeyValue{attribute.String(keyBinding, target), attribute.String("pinwheel.binding.kind",
			string(op.Binding)), attribute.String(keyMethod, method)}
}

// address are the attributes of a URL. User, password, query and fragment are left out: they often have secrets.
func address(text string, server bool) (attributes []attribute.KeyValue) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	attributes = append(attributes, semconv.ServerAddress(events.Clip(u.Hostname(), maxText)))
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443}[u.Scheme]
	}
	attributes = append(attributes, semconv.ServerPort(port))
	if server {
		return append(attributes, semconv.URLScheme(u.Scheme), semconv.URLPath(events.Clip(u.EscapedPath(), maxText)))
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return append(attributes, semconv.URLFull(events.Clip(bare.String(), maxText)))
}
