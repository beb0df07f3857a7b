package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
)

// letterJSON is a dead letter as machines read it.
type letterJSON struct {
	ID        uint64        `json:"id"`
	Owner     string        `json:"owner"`
	Worker    string        `json:"worker"`
	Kind      string        `json:"kind"`
	EventID   string        `json:"eventId"`
	Reason    events.Reason `json:"reason"`
	Message   string        `json:"message"`
	Stack     string        `json:"stack,omitempty"`
	Version   string        `json:"version,omitempty"`
	Node      string        `json:"node,omitempty"`
	Attempts  int           `json:"attempts"`
	Replays   int           `json:"replays"`
	FirstAt   time.Time     `json:"firstAt"`
	At        time.Time     `json:"at"`
	Subject   string        `json:"subject"`
	Stream    string        `json:"stream"`
	StreamSeq uint64        `json:"streamSeq"`
	Headers   events.Header `json:"headers"`
	BodyBytes int           `json:"bodyBytes"`

	// One of these, when the body is asked for: text, or anything else in base64.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"bodyBase64,omitempty"`
}

func (e *env) printLetterJSON(l *events.DeadLetter, body bool) error {
	j := letterJSON{
		ID: l.Seq, Owner: l.Owner, Worker: l.Worker, Kind: l.Kind, EventID: l.EventID,
		Reason: l.Failure.Reason, Message: l.Failure.Message, Stack: l.Failure.Stack, Version: l.Version, Node: l.Node,
		Attempts: l.Attempts, Replays: l.Replays, FirstAt: l.FirstAt, At: l.At,
		Subject: l.Subject, Stream: l.Stream, StreamSeq: l.StreamSeq, Headers: l.Header, BodyBytes: len(l.Body),
	}
	switch {
	case !body:
	case utf8.Valid(l.Body):
		text := string(l.Body)
		j.Body = &text
	default:
		j.BodyBase64 = l.Body
	}
	return json.NewEncoder(e.out).Encode(j)
}

// letterTable prints rows in blocks, so that a long list neither waits in memory nor for its end.
type letterTable struct {
	w    *tabwriter.Writer
	rows int
}

// blockRows have their columns aligned with each other.
const blockRows = 200

func (e *env) newLetterTable() *letterTable {
	t := &letterTable{w: e.table()}
	fmt.Fprintln(t.w, "ID\tFAILED\tWORKER\tKIND\tREASON\tATTEMPTS\tMESSAGE")
	return t
}

func (t *letterTable) add(l *events.DeadLetter) error {
	fmt.Fprintf(t.w, "%d\t%s\t%s/%s\t%s\t%s\t%d\t%s\n", l.Seq, stamped(l.At), l.Owner, l.Worker, l.Kind, l.Failure.Reason, l.Attempts,
		brief(l.Failure.Message))
	if t.rows++; t.rows%blockRows == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *letterTable) end() error { return t.w.Flush() }

// brief is text that fits a table: one line without control characters, cut.
func brief(s string) string {
	const most = 72
	s = printable(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// printable is s without what could steer a terminal: a dead letter holds what strangers sent.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' {
			return -1
		}
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

func (e *env) printLetter(l *events.DeadLetter) error {
	t := e.table()
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, printable(value))
		}
	}
	row("id", fmt.Sprint(l.Seq))
	row("owner", l.Owner)
	row("worker", l.Worker)
	row("version", l.Version)
	row("kind", l.Kind)
	row("reason", string(l.Failure.Reason))
	row("message", strings.ReplaceAll(l.Failure.Message, "\n", " "))
	row("attempts", fmt.Sprint(l.Attempts))
	row("first", stamped(l.FirstAt))
	row("last", stamped(l.At))
	row("replays", fmt.Sprint(l.Replays))
	row("event id", l.EventID)
	row("stored as", fmt.Sprintf("%s, %s:%d", l.Subject, l.Stream, l.StreamSeq))
	row("node", l.Node)
	for _, name := range slices.Sorted(maps.Keys(l.Header)) {
		for _, v := range l.Header[name] {
			row("header", name+": "+v)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if stack := strings.TrimRight(l.Failure.Stack, "\n"); stack != "" {
		fmt.Fprintf(e.out, "\n%s\n", printable(stack))
	}
	return e.printBody(l.Body)
}

// maxShownBody is the largest body that is shown, in bytes; --json prints any.
const maxShownBody = 4 << 10

func (e *env) printBody(body []byte) (err error) {
	switch {
	case len(body) == 0:
		_, err = fmt.Fprintln(e.out, "\nno body")
	case !utf8.Valid(body):
		_, err = fmt.Fprintf(e.out, "\nbody of %d bytes that are not text; --json has them\n", len(body))
	case len(body) > maxShownBody:
		_, err = fmt.Fprintf(e.out, "\nbody of %d bytes; --json has it\n", len(body))
	default:
		_, err = fmt.Fprintf(e.out, "\n%s\n", strings.TrimRight(printable(string(body)), "\n"))
	}
	return err
}
