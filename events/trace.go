package events

import (
	"encoding/hex"
	"fmt"
	"net/netip"
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

// Trace says what a worker tells others of its traces.
type Trace struct {
	// Propagate are the hosts to which subrequests of a sampled event take traceparent and tracestate: api.example.com, or
	// *.example.com for every host below example.com.
	Propagate []string `json:"propagate,omitempty"`
}

// maxPropagate is the largest number of hosts in Trace.Propagate.
const maxPropagate = 32

// Propagates reports whether a host, as a URL has it, is one of Propagate.
func (t *Trace) Propagates(host string) bool {
	if t == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	for _, p := range t.Propagate {
		if below, ok := strings.CutPrefix(p, "*"); ok && len(host) > len(below) && strings.HasSuffix(host, below) ||
			host == p {
			return true
		}
	}
	return false
}

func (t *Trace) validate() error {
	if t == nil {
		return nil
	}
	if len(t.Propagate) > maxPropagate {
		return fmt.Errorf("trace.propagate has %d: at most %d are allowed", len(t.Propagate), maxPropagate)
	}
	for i, p := range t.Propagate {
		host := strings.TrimPrefix(p, "*.")
		if !isHostPattern(host) && !isIPv6(p) {
			return fmt.Errorf("trace.propagate[%d] is %q: it is a host in lower case like api.example.com, or *.example.com for every host below it", i, p)
		}
	}
	return nil
}

// isHostPattern reports whether a host, or what follows *., may be propagated to. It has no port.
func isHostPattern(host string) bool {
	return host != "" && len(host) <= 253 && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" &&
		host[0] != '.'
}

// isIPv6 reports whether p is an address as URLs have it: in brackets, and as short as it can be.
func isIPv6(p string) bool {
	inner, ok := strings.CutPrefix(p, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	a, err := netip.ParseAddr(inner)
	return ok && closed && err == nil && a.Is6() && a.String() == inner
}
