package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// printAck prints where an event is stored.
func (d *delivery) printAck(ack *client.Ack) error {
	id := d.request.ID
	if id == "" {
		id = strconv.FormatUint(ack.Seq, 10)
	}
	what := "stored"
	if ack.Duplicate {
		what = "stored before"
	}
	fact := map[string]any{"stream": ack.Stream, "seq": ack.Seq, "eventId": id, "duplicate": ack.Duplicate}
	return d.tell(d.sending.asJSON, fact, "%s in %s, sequence %d, event id %s", what, ack.Stream, ack.Seq, id)
}

// printReply writes the body unchanged to stdout, and everything else to stderr. The error has the exit code.
func (d *delivery) printReply(r *events.Reply) error {
	return d.printAnswer(r, bytes.NewReader(r.Body))
}

// printAnswer does what printReply does, for a body that comes in chunks.
func (d *delivery) printAnswer(r *events.Reply, body io.Reader) error {
	status, ok := replyStatus(d.request.Kind, r)
	if d.sending.asJSON {
		return d.printJSON(r, ok, body)
	}
	fmt.Fprintln(d.Err, status)
	about := fmt.Sprintf("event %s, attempt %d, %s", r.EventID, r.Attempt, r.Duration.Round(time.Microsecond))
	if r.Version != "" {
		about += ", version " + r.Version
	}
	fmt.Fprintln(d.Err, about)
	for _, line := range headerLines(r.Headers) {
		fmt.Fprintln(d.Err, line)
	}
	out := lastByte{w: d.Data()}
	_, err := io.Copy(&out, body)
	if config.IsTerminal(d.Out) && out.any && out.last != '\n' {
		fmt.Fprintln(d.Out)
	}
	if err != nil {
		return fmt.Errorf("the body broke off: %w", err)
	}
	if !ok {
		return silent(exitFailure)
	}
	return nil
}

// replyJSON is what send prints with --json.
type replyJSON struct {
	OK         bool        `json:"ok"`
	Status     int         `json:"status,omitempty"` // of a fetch event
	Headers    http.Header `json:"headers,omitempty"`
	Body       *string     `json:"body,omitempty"`
	Base64     []byte      `json:"base64,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	EventID    string      `json:"eventId"`
	Attempt    int         `json:"attempt"`
	Version    string      `json:"version,omitempty"`
	DurationMs float64     `json:"durationMs"`
}

// printJSON prints a reply as one JSON object.
func (d *delivery) printJSON(r *events.Reply, ok bool, body io.Reader) error {
	told := replyJSON{OK: ok, Headers: http.Header{}, EventID: r.EventID, Attempt: r.Attempt, Version: r.Version,
		DurationMs: float64(r.Duration.Microseconds()) / 1000}
	if d.request.Kind == events.Fetch {
		told.Status = r.Status
	}
	for i := 0; i+1 < len(r.Headers); i += 2 {
		told.Headers[r.Headers[i]] = append(told.Headers[r.Headers[i]], r.Headers[i+1])
	}
	if r.Failure != nil {
		told.Reason, told.Message = string(r.Failure.Reason), r.Failure.Message
	}
	data, broken := io.ReadAll(body)
	if text := string(data); utf8.ValidString(text) {
		told.Body = &text
	} else {
		told.Base64 = data
	}
	if err := d.Object(told); err != nil {
		return err
	}
	switch {
	case broken != nil:
		return fmt.Errorf("the body broke off: %w", broken)
	case !ok:
		return silent(exitFailure)
	}
	return nil
}

// lastByte remembers the last byte that was written.
type lastByte struct {
	w    io.Writer
	any  bool
	last byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.any, l.last = true, p[len(p)-1]
	}
	return l.w.Write(p)
}

// replyStatus describes the reply in one line, and reports whether it is a success.
func replyStatus(k events.Kind, r *events.Reply) (line string, ok bool) {
	ok = r.Failure == nil
	if k == events.Fetch {
		ok = ok && r.Status < http.StatusBadRequest
		line = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.Status, http.StatusText(r.Status)))
	} else {
		var result struct {
			Success *bool `json:"success"`
		}
		if json.Unmarshal(r.Body, &result) == nil && result.Success != nil {
			ok = ok && *result.Success
		}
		line = map[bool]string{true: "success", false: "no success"}[ok]
	}
	if r.Failure != nil {
		line += ", " + r.Failure.Error()
	}
	return line, ok
}

// headerLines returns "name: value" lines, sorted by name. The wire keeps the order of equal names, but not of
// different ones.
func headerLines(headers []string) []string {
	lines := make([]string, 0, len(headers)/2)
	for i := 0; i+1 < len(headers); i += 2 {
		lines = append(lines, headers[i]+": "+headers[i+1])
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	return lines
}
