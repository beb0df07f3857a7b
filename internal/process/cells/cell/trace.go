package cell

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// trace is the lifecycle.Trace of an attempt whose spans the broker keeps. An operation is sent when it is over. Its
// span is named here, since servers are told the name when the operation begins.
type trace struct {
	cell    *Cell
	attempt uint64
	context events.TraceContext
}

// Context implements lifecycle.Trace.
func (t *trace) Context() events.TraceContext { return t.context }

// Begin implements lifecycle.Trace. The broker bounds the number of spans, and makes those of what it does itself.
func (t *trace) Begin(op lifecycle.Operation) lifecycle.Span {
	if op.Kind == lifecycle.BindingCall || op.Kind == lifecycle.ServiceUse {
		return nil
	}
	s := &span{trace: t, context: t.context}
	s.sent.Operation, s.sent.Began = op, time.Now()
	_, _ = rand.Read(s.context.SpanID[:])
	s.sent.ID = s.context.SpanID
	return s
}

// Record implements lifecycle.Trace. Only a broker calls it.
func (*trace) Record(lifecycle.Operation, lifecycle.Past) {}

// span is an operation under way.
type span struct {
	trace   *trace
	context events.TraceContext

	mu   sync.Mutex
	over bool
	sent wire.SentSpan
}

// Context implements lifecycle.Span.
func (s *span) Context() events.TraceContext { return s.context }

// Status implements lifecycle.Span.
func (s *span) Status(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Status = status
}

// End implements lifecycle.Span.
func (s *span) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over, s.sent.Ended = true, time.Now()
	if err != nil {
		s.sent.Error = err.Error()
	}
	text, err := json.Marshal(&s.sent)
	if err != nil || s.trace.cell.conn.Waiting() > mostLines {
		return
	}
	w := s.trace.cell.conn.Begin(wire.Span)
	w.Uint(s.trace.attempt)
	w.Bytes(text)
	s.trace.cell.conn.End()
	s.trace.cell.conn.Flush()
}
