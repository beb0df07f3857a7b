package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// logs sends log lines of workers.
type logs struct {
	to     log.Logger
	owners perowner.Rates
}

// ownerLines is how many lines of one owner are sent in a second.
const ownerLines = 1000

func (l *logs) take(line *events.LogLine) {
	if _, ok := l.owners.Allow(line.Owner, time.Now()); !ok {
		return
	}
	var r log.Record
	r.SetTimestamp(line.Time)
	r.SetObservedTimestamp(line.Time)
	r.SetSeverity(severity(line.Level))
	r.SetSeverityText(line.Level)
	r.SetBody(attribute.StringValue(events.Clip(line.Text, maxLogText)))
	r.AddAttributes(worker(line.Owner, line.Worker, line.Version)...)
	if line.EventID != "" {
		r.AddAttributes(attribute.String(keyEventID, line.EventID), attribute.Int(keyAttempt, line.Attempt))
	}
	if line.Stack != "" {
		r.AddAttributes(semconv.ExceptionStacktrace(events.Clip(line.Stack, maxLogText)))
	}
	l.to.Emit(spanOf(line), r)
}

// maxLogText is the longest text or stack that is sent, bytes.
const maxLogText = 4 << 10

func severity(level string) log.Severity {
	switch level {
	case "debug":
		return log.SeverityDebug
	case "warn":
		return log.SeverityWarn
	case "error":
		return log.SeverityError
	}
	return log.SeverityInfo
}

// spanOf is a context with the span of a line. The fleet wrote its ids.
func spanOf(line *events.LogLine) context.Context {
	ctx := context.Background()
	id, err := trace.TraceIDFromHex(line.TraceID)
	span, wrong := trace.SpanIDFromHex(line.SpanID)
	if err != nil || wrong != nil { // it has none
		return ctx
	}
	return trace.ContextWithSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}))
}
