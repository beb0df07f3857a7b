package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// Output writes lines to the output of workers. Any goroutine may call it.
type Output interface {
	Log(line events.LogLine)
}

// Bounds of the lines about requests.
const (
	linesPerSecond  = 50 // of an owner
	linesAtOnce     = 200
	maxLoggedBody   = 2 << 10 // bytes
	maxLoggedHeader = 256     // bytes of the name of one, and of its value
	maxLoggedFields = 50      // headers of each side
	maxLoggedURL    = 2 << 10 // bytes of path and query
)

// requestLog writes lines about requests to the output of the workers that want them. Any goroutine may call its
// methods.
type requestLog struct {
	output Output
	lines  perowner.Rates // of owners
}

func newRequestLog(output Output) *requestLog {
	return &requestLog{output: output, lines: perowner.Rates{PerSecond: linesPerSecond, Burst: linesAtOnce}}
}

// tell writes the line about a request, if the worker wants one.
func (l *requestLog) tell(x *exchange, took time.Duration, came int64) {
	w, wants := x.service.worker, x.service.Log
	if w == nil || !wants.Wants(x.status) && (x.broken == nil || !wants.Wants(http.StatusInternalServerError)) {
		return
	}
	now := time.Now()
	left, ok := l.lines.Allow(w.Owner, now)
	if !ok {
		return
	}
	line := events.LogLine{Time: now, Owner: w.Owner, Worker: w.Name, Version: cmp.Or(x.version, w.Version), Level: "info",
		Text: describe(x, wants, took, came)}
	if x.status >= http.StatusInternalServerError || x.broken != nil {
		line.Level = "error"
	}
	if x.event != nil {
		line.EventID, line.Attempt = x.event.ID, x.event.Attempt
	}
	if left > 0 {
		line.Text += fmt.Sprintf("\n(%d lines about requests before were left out)", left)
	}
	l.output.Log(line)
}

// describe is the text of the line.
func describe(x *exchange, wants *workers.RequestLog, took time.Duration, came int64) string {
	var b strings.Builder
	url := x.r.URL.EscapedPath()
	if wants.Level == workers.RequestsFull && x.r.URL.RawQuery != "" {
		url += "?" + x.r.URL.RawQuery
	}
	fmt.Fprintf(&b, "%s %s %d in %v, %d bytes in, %d out, client %v", clipped(x.r.Method, maxLogged), clipped(url, maxLoggedURL),
		x.status, took.Round(10*time.Microsecond), came, x.sent, x.g.clientOf(x.r).address)
	if x.broken != nil {
		fmt.Fprintf(&b, "\n  the body of the response broke off: %s", clipped(x.broken.Error(), maxLoggedHeader))
	}
	if wants.Level == workers.RequestsFull {
		writeHeaders(&b, "request", x.r.Header)
		writeHeaders(&b, "response", x.w.Header())
	}
	if wants.RequestBody && x.body != nil {
		writeBody(&b, "request", x.body.seen.data, came)
	}
	if wants.ResponseBody {
		writeBody(&b, "response", x.seen.data, x.sent)
	}
	return b.String()
}

// clipped is the beginning of a text that is longer than most bytes.
func clipped(text string, most int) string {
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// secretHeaders have values that no line has.
var secretHeaders = map[string]bool{
	headerAuthorization: true, headerToken: true, "Cookie": true, "Set-Cookie": true, "Proxy-Authorization": true,
}

func writeHeaders(b *strings.Builder, side string, h http.Header) {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if n++; n > maxLoggedFields {
				continue
			}
			if secretHeaders[name] {
				value = "(not logged)"
			}
			fmt.Fprintf(b, "\n  %s header %s: %s", side, clipped(name, maxLoggedHeader),
				strings.ToValidUTF8(clipped(value, maxLoggedHeader), "\uFFFD"))
		}
	}
	if n > maxLoggedFields {
		fmt.Fprintf(b, "\n  %s header: %d more", side, n-maxLoggedFields)
	}
}

func writeBody(b *strings.Builder, side string, beginning []byte, size int64) {
	if size == 0 {
		return
	}
	text, cut := beginning, ""
	if int64(len(beginning)) < size {
		cut = fmt.Sprintf("… (%d bytes)", size)
		// the end may be in the middle of a character
		for i := 0; i < utf8.UTFMax-1 && len(text) > 0 && !utf8.Valid(text); i++ {
			text = text[:len(text)-1]
		}
	}
	if !utf8.Valid(text) {
		fmt.Fprintf(b, "\n  %s body: %d bytes that are no text", side, size)
		return
	}
	fmt.Fprintf(b, "\n  %s body: %s%s", side, text, cut)
}

// beginning keeps the first bytes of a body. The zero beginning keeps none.
type beginning struct {
	most int
	data []byte
}

func (k *beginning) add(data []byte) {
	if room := k.most - len(k.data); room > 0 {
		k.data = append(k.data, data[:min(room, len(data))]...)
	}
}

// kept is how many bytes of the bodies of a request and its response a line has. wants may be nil.
func kept(wants *workers.RequestLog) (request, response int) {
	if wants != nil && wants.RequestBody {
		request = maxLoggedBody
	}
	if wants != nil && wants.ResponseBody {
		response = maxLoggedBody
	}
	return request, response
}
