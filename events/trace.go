package events

import (
	"encoding/hex"
	"slices"
	"strings"
)

// TraceContext is a span of a trace, as W3C Trace Context names it.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Sampled bool
	State   string // tracestate, passed on as it came
}

// maxTraceState is how many bytes of tracestate are passed on. The specification asks for 512 at least.
const maxTraceState = 512

// ParseTraceParent reads traceparent and tracestate. ok is false when traceparent is not valid. A tracestate that is
// too long or has characters other than printable ASCII is left out.
func ParseTraceParent(parent, state string) (c TraceContext, ok bool) {
	// version-traceid-spanid-flags. A version after 00 may have more behind another dash. ff is none.
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || parent[:2] == "ff" {
		return c, false
	}
	if len(parent) > 55 && (parent[:2] == "00" || parent[55] != '-') {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], parent[:2]}, {c.TraceID[:], parent[3:35]}, {c.SpanID[:], parent[36:52]}, {flags[:], parent[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil || strings.ToLower(part.text) != part.text {
			return TraceContext{}, false
		}
	}
	if c.TraceID == [16]byte{} || c.SpanID == [8]byte{} {
		return TraceContext{}, false
	}
	c.Sampled = flags[0]&1 != 0
	if len(state) <= maxTraceState && !strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.State = state
	}
	return c, true
}

// Parent is the traceparent of spans below c.
func (c TraceContext) Parent() string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.TraceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.SpanID[:])
	if c.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// AddTo adds traceparent and tracestate to headers: name, value, name, value. It returns headers unchanged when they
// have a traceparent already, whatever its value. The slice behind headers is not written.
func (c TraceContext) AddTo(headers []string) []string {
	for i := 0; i+1 < len(headers); i += 2 {
		if strings.EqualFold(headers[i], HeaderTraceParent) {
			return headers
		}
	}
	headers = append(slices.Clip(headers), HeaderTraceParent, c.Parent())
	if c.State != "" {
		headers = append(headers, HeaderTraceState, c.State)
	}
	return headers
}

// SetIn does the same in h, which must not be nil.
func (c TraceContext) SetIn(h Header) {
	if len(h.Fold(HeaderTraceParent)) > 0 {
		return
	}
	h.Set(HeaderTraceParent, c.Parent())
	if c.State != "" {
		h.Set(HeaderTraceState, c.State)
	}
}
