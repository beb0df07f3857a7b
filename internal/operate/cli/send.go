package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// sending holds the flags of send.
type sending struct {
	data, file          string
	hasData, hasFile    bool
	headers             []string
	timeout             time.Duration
	noWait, asJSON      bool
	stream              bool // fetch
	id, contentType     string
	method, path        string // fetch
	scheduledTime, cron string // scheduled
	at                  string
	version             string
	after               time.Duration
}

func newSendCommand(e *env) *cobra.Command {
	var s sending
	var c *cobra.Command
	c = e.command(cobra.Command{
		Use: "send KIND OWNER/WORKER", Short: "Send an event to a worker and print its reply", Args: cobra.ExactArgs(2),
		Long: "Sends an event and waits for the reply: its body goes to stdout, status and headers to stderr. KIND is fetch, task or\n" +
			"scheduled.\n\n" +
			"The exit code is 1 when the reply is an error (the event failed, an HTTP status of 400 or more, or success:false),\n" +
			"2 when the command line is wrong, and 3 when no reply came in time. A task then still runs.",
		Example: "  pinwheel send fetch dev/hello --data '{\"name\":\"Ada\"}'\n" +
			"  pinwheel send task dev/csv-report --data-file sales.csv --content-type text/csv",
	}, func(ctx context.Context, args []string) error {
		s.hasData, s.hasFile = c.Flags().Changed("data"), c.Flags().Changed("data-file")
		r, err := s.request(args[0], args[1])
		if err != nil {
			return err
		}
		if err := s.readBody(r, e.In); err != nil {
			return err
		}
		d := delivery{env: e, sending: &s, request: r}
		return d.run(ctx)
	})
	f := c.Flags()
	f.StringVar(&s.data, "data", "", "body of the event")
	f.StringVar(&s.file, "data-file", "", "file with the body; - is stdin")
	f.BoolVar(&s.stream, "stream", false, "fetch: send the body while the event runs, as fast as the handler takes it; with --data-file")
	f.StringArrayVar(&s.headers, "header", nil, "`NAME=VALUE`: header of the request (fetch) or of the event; may be repeated")
	f.StringVar(&s.contentType, "content-type", "", "type of the body (default for tasks: application/json if it is JSON)")
	f.StringVar(&s.method, "method", "", "fetch: HTTP method (default GET, or POST with a body)")
	f.StringVar(&s.path, "path", "", "fetch: path with query, or a whole URL (default /)")
	f.StringVar(&s.scheduledTime, "time", "", "scheduled: the time that the event stands for, in RFC 3339")
	f.StringVar(&s.cron, "cron", "", "scheduled: the expression that the event stands for")
	f.StringVar(&s.at, "at", "", "run it at this time, in RFC 3339")
	f.DurationVar(&s.after, "after", 0, "run it so long after it is stored, like 90s or 1h30m")
	f.StringVar(&s.version, "version", "", "run it by this version of the worker, whole or its number (default: the active one)")
	f.StringVar(&s.id, "id", "", "id of the event: a second one with the same id is not stored")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the reply")
	f.BoolVar(&s.asJSON, "json", false, "print a JSON object: status, headers and body (text) or base64 (bytes that are no text)")
	f.BoolVar(&s.noWait, "no-wait", false, "wait only until the event is stored, and print where")
	return c
}

// request builds the event without its body. Its error is a usage error.
func (s *sending) request(kind, target string) (r *client.Request, err error) {
	r = &client.Request{ID: s.id, Version: s.version, Method: s.method, URL: s.path, Header: events.Header{},
		HTTPHeader: http.Header{}}
	if r.Kind, err = events.ParseKind(kind); err != nil {
		return nil, usage("%w", err)
	}
	if r.Owner, r.Worker, err = events.ParseTarget(target); err != nil {
		return nil, usage("%w", err)
	}
	if s.timeout <= 0 {
		return nil, usage("--timeout is %s: it is longer than 0", s.timeout)
	}
	for _, only := range []struct {
		flag, value string
		kind        events.Kind
	}{
		{"--method", s.method, events.Fetch}, {"--path", s.path, events.Fetch},
		{"--time", s.scheduledTime, events.Scheduled}, {"--cron", s.cron, events.Scheduled},
	} {
		if only.value != "" && only.kind != r.Kind {
			return nil, usage("%s is for %s events, and this is a %s", only.flag, only.kind, r.Kind)
		}
	}
	if s.scheduledTime != "" {
		if r.ScheduledTime, err = time.Parse(time.RFC3339Nano, s.scheduledTime); err != nil {
			return nil, usage("--time %q: it is a time in RFC 3339, like 2026-01-02T15:04:05Z", s.scheduledTime)
		}
	}
	if s.at != "" {
		if r.DeliverAt, err = events.ParseDeliverAt(s.at); err != nil {
			return nil, usage("--at %w", err)
		}
	}
	if r.DeliverAfter = s.after; s.after < 0 || s.after > events.MaxDelay || s.at != "" && s.after != 0 {
		return nil, usage("--after is %s: it is 0s to %s, and not together with --at", s.after, events.MaxDelay)
	}
	if s.cron != "" {
		r.Header.Set(events.HeaderCron, s.cron)
	}
	return r, s.readHeaders(r)
}

// readHeaders stores --header and --content-type in the field that the event kind uses.
func (s *sending) readHeaders(r *client.Request) error {
	into := r.Header
	if r.Kind == events.Fetch {
		into = events.Header(r.HTTPHeader)
	}
	for _, h := range s.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usage("--header %q: write it as NAME=VALUE", h)
		}
		if flag := ownFlag(r.Kind, name); flag != "" {
			return usage("--header %s: use %s", name, flag)
		}
		into[name] = append(into[name], value)
	}
	if s.contentType == "" {
		return nil
	}
	if _, twice := contentType(into); twice {
		return usage("--content-type and --header %s: choose one", events.HeaderContentType)
	}
	if r.Kind == events.Scheduled {
		r.Header.Set(events.HeaderContentType, s.contentType)
	}
	r.ContentType = s.contentType
	return nil
}

// ownFlag is the flag to use instead of a header that has a meaning for Pinwheel.
func ownFlag(k events.Kind, name string) string {
	for header, flag := range map[string]string{
		events.HeaderEventID: "--id", events.HeaderMsgID: "--id", events.HeaderReplyTo: "--no-wait, or nothing",
		events.HeaderDeadline: "--timeout", events.HeaderScheduledTime: "--time", events.HeaderCron: "--cron",
		events.HeaderWorkerVersion: "--version", events.HeaderDeliverAt: "--at", events.HeaderDeliverAfter: "--after",
		events.HeaderMethod: "--method", events.HeaderURL: "--path",
	} {
		if strings.EqualFold(name, header) {
			return flag
		}
	}
	if k == events.Fetch && len(name) > len(events.HeaderHTTPPrefix) &&
		strings.EqualFold(name[:len(events.HeaderHTTPPrefix)], events.HeaderHTTPPrefix) {
		return "the name alone, " + name[len(events.HeaderHTTPPrefix):]
	}
	return ""
}

func contentType(h events.Header) (value string, ok bool) {
	for name, values := range h {
		if strings.EqualFold(name, events.HeaderContentType) && len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

// readBody reads the body. If a task's body is JSON, it sets that content type unless the user gave another one.
func (s *sending) readBody(r *client.Request, stdin io.Reader) (err error) {
	switch {
	case s.hasData && s.hasFile:
		return usage("--data and --data-file: choose one")
	case s.stream && (!s.hasFile || r.Kind != events.Fetch || s.noWait):
		return usage("--stream is for a fetch event with --data-file, whose reply is waited for")
	case s.stream && s.file == "-":
		r.BodyFrom, r.BodyLive = stdin, true
	case s.stream:
		if r.BodyFrom, err = os.Open(s.file); err != nil { // open until the command ends
			return usage("--data-file: %w", err)
		}
		r.BodyLive = true
	case s.hasFile && s.file == "-":
		if r.Body, err = io.ReadAll(stdin); err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
	case s.hasFile:
		if r.Body, err = os.ReadFile(s.file); err != nil {
			return usage("--data-file: %w", err)
		}
	default:
		r.Body = []byte(s.data)
	}
	if _, given := contentType(r.Header); r.Kind == events.Task && !given && r.ContentType == "" && json.Valid(r.Body) {
		r.ContentType = "application/json"
	}
	return nil
}

// delivery sends an event and prints its reply.
type delivery struct {
	*env
	sending *sending
	request *client.Request
	nc      *nats.Conn
}

func (d *delivery) run(ctx context.Context) (err error) {
	r := d.request
	if d.nc, err = d.dial(r.Owner); err != nil {
		return err
	}
	defer d.nc.Close()
	if most := d.nc.MaxPayload(); int64(len(r.Body)) > most/2 && r.Kind == events.Fetch {
		r.BodyFrom, r.Body = bytes.NewReader(r.Body), nil
	} else if int64(len(r.Body)) > most {
		return usage("the body has %d bytes: this NATS takes at most %d for a %s", len(r.Body), most, r.Kind)
	}
	c, err := client.New(d.nc, client.Prefix(d.cfg.Prefix))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, end := d.whileStored(ctx)
	defer end()
	limited, cancel := context.WithTimeout(ctx, d.sending.timeout)
	defer cancel()
	if d.sending.noWait {
		ack, err := c.Publish(limited, *r)
		if err != nil {
			return d.failed(ctx, err)
		}
		return d.printAck(ack)
	}
	if r.Kind == events.Fetch {
		return d.open(ctx, c)
	}
	reply, err := c.Call(limited, *r)
	var failure *events.Failure
	if err != nil && !errors.As(err, &failure) {
		return d.failed(ctx, err)
	}
	return d.printReply(reply)
}

// open sends a fetch event and prints its response as it arrives. The time limit applies to the head of the response.
func (d *delivery) open(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.request.Deadline = time.Now().Add(d.sending.timeout)
	late := time.AfterFunc(d.sending.timeout, func() { cancel(context.DeadlineExceeded) })
	reply, body, err := c.Open(ctx, *d.request)
	var failure *events.Failure
	if errors.As(err, &failure) {
		return d.printReply(reply)
	}
	acknowledged := !errors.Is(err, client.ErrNotAcknowledged)
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			if err = context.DeadlineExceeded; !acknowledged {
				err = fmt.Errorf("%w: %w", client.ErrNotAcknowledged, err)
			}
			return d.failed(context.Background(), err)
		}
		return d.failed(ctx, err)
	}
	defer func() { _ = body.Close() }()
	if !late.Stop() {
		return d.failed(context.Background(), context.DeadlineExceeded)
	}
	return d.printAnswer(reply, body)
}

// failed returns the message and the exit code for an event without a reply. ctx is done when the user ended the
// command.
func (d *delivery) failed(ctx context.Context, err error) error {
	var found *unstored
	switch {
	case errors.As(context.Cause(ctx), &found):
		return fmt.Errorf("the event is not known to be stored: %w", found)
	case errors.Is(err, client.ErrMalformed):
		return usage("%w", err)
	case errors.Is(err, nats.ErrMaxPayload):
		return usage("body and headers do not fit a message of this NATS: %w", err)
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return err
	}
	failure, unheard := d.whyUnstored(ctx), errors.Is(err, client.ErrNotAcknowledged)
	switch {
	case failure != nil && unheard:
		return fmt.Errorf("the event is not known to be stored: %w", failure)
	case failure != nil:
		return timedOut("no reply within %s: %w", d.sending.timeout, failure)
	case d.sending.noWait:
		return timedOut("not known to be stored within %s: %w", d.sending.timeout, err)
	case unheard:
		return timedOut("JetStream has not said within %s that the event is stored ('pinwheel doctor' may tell why): %w", d.sending.timeout, err)
	}
	return timedOut("no reply within %s: %w", d.sending.timeout, err)
}

// askAfter is how long JetStream may take to store an event before send asks why, and how long send waits between two
// such questions.
const askAfter = time.Second

// unstored says why JetStream does not acknowledge an event.
type unstored struct{ why error }

func (u *unstored) Error() string {
	var failed *stored.Failure
	if errors.As(u.why, &failed) {
		return u.why.Error() + "; " + stored.Advice
	}
	return u.why.Error()
}

// whileStored returns a context that ends when JetStream turns out not to store what the event needs. Its cause is an
// *unstored then. Once the event is stored, nobody asks any more: its reply may still come.
func (d *delivery) whileStored(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	var isStored atomic.Bool
	d.request.OnStored = func() { isStored.Store(true) }
	asking := time.AfterFunc(askAfter, func() {
		again := time.NewTicker(askAfter)
		defer again.Stop()
		for ctx.Err() == nil && !isStored.Load() {
			if failure := d.whyUnstored(ctx); failure != nil && !isStored.Load() {
				end(failure)
				return
			}
			select {
			case <-ctx.Done():
			case <-again.C:
			}
		}
	})
	return ctx, func() { asking.Stop(); end(nil) }
}

// whyUnstored returns why JetStream does not acknowledge events, or nil. nats-server says of a stream with one copy
// that it no longer writes it; owners may not ask it. The processes of the fleet know that too, some seconds later,
// and when JetStream is silent for another reason. They answer by the owner API.
func (d *delivery) whyUnstored(ctx context.Context) *unstored {
	if failure := d.unwritten(ctx); failure != nil {
		return &unstored{failure}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	said, err := control.Ask(ctx, control.NewOwnerClient(d.nc, d.cfg.Prefix, d.request.Owner), control.GetStorage,
		control.AskStorage{})
	if err != nil || said.Problem == "" {
		return nil
	}
	return &unstored{errors.New(config.PrintableText(said.Problem))}
}

// unwritten returns the failure of a stream that the event needs and that nats-server no longer writes, or nil.
func (d *delivery) unwritten(ctx context.Context) *stored.Failure {
	if d.isOwner() {
		return nil
	}
	for _, stream := range []string{events.StreamEvents, events.StreamBodies} {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		failure, err := stored.Failed(ctx, d.nc, stream)
		cancel()
		if err != nil || failure != nil {
			return failure
		}
	}
	return nil
}

func timedOut(format string, args ...any) error {
	return &exitError{code: exitTimeout, err: fmt.Errorf(format, args...)}
}
