package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// sendPage is the data of the form of a test event.
type sendPage struct {
	Name          string // OWNER/WORKER
	Owner, Worker string
	Handlers      []events.Kind // that the active version has
	Event         control.SendEvent
	Headers       string // Name: value, a line each
}

// Kinds are those of events.
func (sendPage) Kinds() []string {
	names := make([]string, len(events.Kinds))
	for i, k := range events.Kinds {
		names[i] = k.String()
	}
	return names
}

// Handled reports whether the active version handles a kind.
func (p sendPage) Handled(kind string) bool {
	return slices.ContainsFunc(p.Handlers, func(k events.Kind) bool { return k.String() == kind })
}

// Methods are suggestions.
func (sendPage) Methods() []string {
	return []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
}

// showSend shows the form, with what it had when it was refused.
func showSend(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	name := in.workerName()
	shown, err := control.Ask(ctx, fleet, control.VersionsShow, control.ShowVersion{WorkerName: name})
	if err != nil {
		return nil, err
	}
	p := sendPage{Name: name.Worker, Owner: in.path("owner"), Worker: in.path("worker"), Handlers: shown.Version.Handlers,
		Headers: in.either("headers")}
	p.Event = control.SendEvent{WorkerName: name, Kind: in.either("kind"), Version: in.either("version"),
		Method: in.either("method"), Path: in.either("path"), ContentType: in.either("contentType"), Body: in.either("body"),
		Cron: in.either("cron"), Time: in.either("time")}
	if p.Event.Kind == "" && len(p.Handlers) > 0 {
		p.Event.Kind = p.Handlers[0].String()
	}
	return &page{view: "send", title: "Send a test event", place: "workers", data: p}, nil
}

// sendEvent sends the event of the form. It has the fields of all kinds: only those of the kind count.
func sendEvent(c *call) (*page, error) {
	q := control.SendEvent{WorkerName: c.workerName(), Kind: c.form("kind"), Version: strings.TrimSpace(c.form("version")),
		ContentType: strings.TrimSpace(c.form("contentType")), Body: plainLines(c.form("body"))}
	switch q.Kind {
	case events.Fetch.String():
		q.Method, q.Path = strings.TrimSpace(c.form("method")), strings.TrimSpace(c.form("path"))
	case events.Scheduled.String():
		q.Cron = strings.TrimSpace(c.form("cron"))
		if text := strings.TrimSpace(c.form("time")); text != "" {
			q.Time = inUTC(text)
		}
	}
	headers, err := parseHeaders(c.form("headers"))
	if err != nil {
		return c.again(showSend, err)
	}
	for name, values := range headers {
		for _, v := range values {
			q.Headers = append(q.Headers, control.EventHeader{Name: name, Value: v})
		}
	}
	e, err := c.outbox.send(c.fleet(), q)
	if err == nil {
		err = e.refusal(c.ctx)
	}
	if err != nil {
		return c.again(showSend, err)
	}
	return c.done("/sent/"+e.ID, "The event is sent to %s.", q.Worker)
}

// inUTC is a time of a form, which has no zone, in RFC 3339. What is no such time is as it was.
func inUTC(text string) string {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(time.RFC3339Nano)
		}
	}
	return text
}

// sentPage is the data of the page of a test event.
type sentPage struct {
	*sentEvent
	Seen seenOfEvent
}

// Target is the worker.
func (p sentPage) Target() string { return p.Owner + "/" + p.Worker }

// State is the outcome in a word, with that of its badge.
func (p sentPage) State() pair {
	r := p.Seen.Answer.Reply
	switch {
	case p.Seen.Err != nil:
		return pair{"not sent", "bad"}
	case r != nil && r.Reason != "":
		return pair{r.Reason, "bad"}
	case r != nil && r.Failed():
		return pair{"answered with an error", "warn"}
	case r != nil:
		return pair{"ok", "ok"}
	case p.Seen.Over:
		return pair{"not answered", "warn"}
	}
	return pair{"under way", "running"}
}

// Problem is why there is no reply; "" = there is one, or it may still come.
func (p sentPage) Problem() string {
	if p.Seen.Err != nil {
		return failureOf(p.Seen.Err).Text
	}
	return p.Seen.Answer.Why
}

// Body is the body of the reply as text: JSON in lines, as it is, or in base64.
func (p sentPage) Body() string {
	r := p.Seen.Answer.Reply
	if r.Base64 != nil {
		return base64.StdEncoding.EncodeToString(r.Base64)
	}
	text, _ := inLines(r.Body)
	return text
}

// beforeReply is how long the page of a test event waits for its end before it is shown: most end at once, and a
// browser without a script need not load it again.
const beforeReply = 3 * time.Second

func (c *call) sentPage() (*page, sentPage, error) {
	e := c.outbox.find(c.path("id"))
	if e == nil {
		return nil, sentPage{}, &control.Error{Code: 404,
			Text: "this console has not sent such an event, or has sent others since"}
	}
	p := sentPage{e, e.now()}
	return &page{view: "sent", title: "Test event", place: "workers", data: p}, p, nil
}

func showSent(c *call) (*page, error) {
	_, p, err := c.sentPage()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, beforeReply)
	defer cancel()
	for !p.Seen.Over && err == nil {
		p.Seen, err = p.after(ctx, p.Seen.Number)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	shown, _, err := c.sentPage()
	return shown, err
}

// liveSent sends what is seen of a test event until it is over.
func liveSent(c *call) (*page, error) {
	_, p, err := c.sentPage()
	if err != nil {
		return nil, err
	}
	return nil, c.live.run(c.w, c.http, func(s *stream) error {
		for {
			shown, err := c.views.parts(c.session, p, "sent-reply", "sent-lines")
			if err == nil {
				err = s.send("parts", shown)
			}
			switch {
			case err != nil:
				return err
			case p.Seen.Over:
				return s.send("over", fmt.Sprint(p.Seen.Number))
			}
			if p.Seen, err = p.after(s.ctx, p.Seen.Number); err != nil {
				return err
			}
		}
	})
}
