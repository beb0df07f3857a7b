package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/queue"
)

// queuePage is the data of the page of what waits.
type queuePage struct {
	queue.Page
	Query  url.Values
	Owner  string // whose events the page lists; "": none
	Worker string // of the owner; "": all
	Paused []control.Paused
	Busy   []busyOwner // owners with events in processes, those with most first
	Skip   bool        // the form of a pause leaves out ticks
	After  string
}

// Places are where an event may be stored.
func (queuePage) Places() []string { return control.QueuePlaces() }

// Target is OWNER or OWNER/WORKER.
func (p queuePage) Target() string { return control.Paused{Owner: p.Owner, Worker: p.Worker}.Target() }

// Stopped reports whether exactly the target is paused.
func (p queuePage) Stopped() bool {
	return slices.ContainsFunc(p.Paused, func(one control.Paused) bool { return one.Target() == p.Target() })
}

// Link is the query of the filter, to come back to after an action.
func (p queuePage) Link() string { return strings.TrimSuffix(with(p.Query), "?") }

// More is the query of the next page; "": there is none.
func (p queuePage) More() string {
	if p.Next == "" {
		return ""
	}
	return with(p.Query, "after", p.Next)
}

// queueFields are the fields of a filter of events, as the URL names them.
var queueFields = []string{"owner", "worker", "place", "older"}

// routesOfQueue are the pages and actions about what waits.
func (c *Console) routesOfQueue(mux *http.ServeMux) {
	c.get(mux, "/queue", listQueue)
	c.look(mux, "/queue/event", showQueued)
	c.asked(mux, "/queue/cancel", askCancelEvent, cancelEvent)
	c.post(mux, "/queue/pause", pauseWorkers)
	c.post(mux, "/queue/resume", resumeWorkers)
	c.look(mux, "/sources", listSources)
}

func listQueue(c *call) (*page, error) {
	q := c.query()
	p := queuePage{Query: url.Values{}, Owner: q.Get("owner"), Worker: q.Get("worker"), After: q.Get("after")}
	for _, name := range queueFields {
		if v := q.Get(name); v != "" {
			p.Query.Set(name, v)
		}
	}
	show := func(err error) (*page, error) {
		return &page{view: "queue", title: "Queue", place: "queue", data: p}, err
	}
	wrong := control.SplitWorker(&p.Owner, &p.Worker)
	if wrong != nil {
		p.Owner = ""
	}
	paused, err := control.Ask(c.ctx, c.fleet(), control.PausedAll, control.ListPaused{Owner: p.Owner})
	if err != nil || wrong != nil {
		return show(errors.Join(wrong, err))
	}
	p.Paused = paused.Paused
	if p.Owner == "" {
		state, err := c.traffic(false)
		p.Busy = state.Busy()
		return show(err)
	}
	r := control.ListEvents{Owner: p.Owner, Worker: p.Worker, Place: q.Get("place"), After: p.After, Limit: pageSize}
	if text := q.Get("older"); text != "" {
		older, err := time.ParseDuration(text)
		if err != nil || older < 0 {
			return show(wrongForm("older", text, "it is a time such as 90s, 15m or 24h"))
		}
		r.Older = older.Milliseconds()
	}
	p.Page, err = queue.List(c.ctx, c.fleet(), r, time.Now().Add(searchTime))
	return show(err)
}

// queuedPage is the data of the page of an event that has not ended.
type queuedPage struct {
	queue.Event
	Gone bool // no such event waits or runs
}

// Target is the worker of the event.
func (p queuedPage) Target() string { return p.Owner + "/" + p.Worker }

// letter has the body as that of a dead letter.
func (p queuedPage) letter() letterPage {
	return letterPage{LetterJSON: &events.LetterJSON{BodyBytes: p.Bytes, Body: p.Body, BodyBase64: p.BodyBase64}}
}

// Shown reports whether the body is here.
func (p queuedPage) Shown() bool { return p.letter().Shown() }

// Content is the body as text.
func (p queuedPage) Content() string { return p.letter().Content() }

// Indented reports whether Content has other white space than the body.
func (p queuedPage) Indented() bool { return p.letter().Indented() }

func showQueued(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	r := control.ShowEvent{Owner: in.arg("owner"), Worker: in.arg("worker"), ID: in.arg("id")}
	e, err := queue.Show(ctx, fleet, r)
	p := queuedPage{Event: e}
	var is *control.Error
	if errors.As(err, &is) && is.Code == 404 {
		p.Gone, err = true, nil
		p.Owner, p.Worker, p.ID = r.Owner, r.Worker, r.ID
	}
	if err != nil {
		return nil, err
	}
	return &page{view: "queued", title: "Event " + p.ID, place: "queue", data: p}, nil
}

// cancelEvent ends the event whose place the form names.
func cancelEvent(c *call) (*page, error) {
	owner, ref := c.form("owner"), c.form("id")
	list := "/queue?" + url.Values{"owner": {owner}}.Encode()
	done, err := control.Ask(c.ctx, c.fleet(), control.EventsCancel,
		control.CancelEvents{ListEvents: control.ListEvents{Owner: owner}, Names: []string{ref}})
	if err != nil && failureOf(err).Code != http.StatusNotFound {
		return nil, err
	}
	for _, e := range done.Events {
		switch e.Outcome {
		case cancels.Cancelled:
			return c.done(list, "The event %s is cancelled.", e.ID)
		case cancels.Ending:
			return c.done(list, "The event %s ends, and has not ended yet.%s", e.ID, silent(done.Silent))
		}
	}
	return c.done(list, "The event at %s had ended, or had moved to another place.", ref)
}

// silent names processes that do not answer.
func silent(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return " These processes do not answer: " + strings.Join(nodes, ", ") + "."
}

// pausing is the target of a form about pauses.
func (in inputs) pausing() (t control.PauseTarget, err error) {
	t.Owner, t.Worker = strings.TrimSpace(in.form("owner")), strings.TrimSpace(in.form("worker"))
	if owner, worker, both := strings.Cut(t.Owner, "/"); both && t.Worker == "" {
		t.Owner, t.Worker = owner, worker
	}
	if t.Owner == "" {
		err = wrongForm("owner", "", "it says whose events wait: OWNER or OWNER/WORKER")
	}
	return t, err
}

func pauseWorkers(c *call) (*page, error) {
	t, err := c.pausing()
	var p control.PausedOwner
	if err == nil {
		p, err = control.Ask(c.ctx, c.fleet(), control.PauseWorkers, control.Pause{PauseTarget: t,
			SkipTicks: c.form("ticks") == "skip"})
	}
	return c.paused(t, p, "paused", err)
}

func resumeWorkers(c *call) (*page, error) {
	t, err := c.pausing()
	var p control.PausedOwner
	if err == nil {
		p, err = control.Ask(c.ctx, c.fleet(), control.ResumeWorkers, t)
	}
	return c.paused(t, p, "resumed", err)
}

// paused answers a form about pauses, when all processes have taken the change up.
func (c *call) paused(t control.PauseTarget, p control.PausedOwner, done string, err error) (*page, error) {
	if err != nil {
		return nil, err
	}
	name := control.Paused{Owner: t.Owner, Worker: t.Worker}.Target()
	processes, running, err := control.AwaitPaused(c.ctx, c.fleet(), t, p)
	switch {
	case errors.Is(err, nats.ErrNoResponders) || err == nil && processes == 0:
		return c.done(within(c.form("back")), "%s is %s. No process runs.", name, done)
	case err != nil:
		return c.done(within(c.form("back")), "%s is %s: %s.", name, done, failureOf(err).Text)
	case done == "resumed":
		return c.done(within(c.form("back")), "%s is resumed in all processes (%d).", name, processes)
	}
	return c.done(within(c.form("back")), "%s is paused in all processes (%d). %d of its events still run.", name, processes,
		running)
}

// sourcesPage is the data of the page of sources.
type sourcesPage struct {
	queue.Sources
	Query url.Values
	After string
	At    time.Time
}

// States are those by which the page is filtered.
func (sourcesPage) States() []string { return queue.States() }

// Narrow reports whether there is a filter.
func (p sourcesPage) Narrow() bool { return len(p.Query) > 0 }

// More is the query of the next page; "": there is none.
func (p sourcesPage) More() string {
	if p.Next == "" {
		return ""
	}
	return with(p.Query, "after", p.Next)
}

// Look is how bad a state is, as a class of a badge.
func (sourcesPage) Look(s queue.Source) string {
	switch {
	case s.Bad():
		return "bad"
	case s.Calm():
		return "ok"
	}
	return "warn"
}

func listSources(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	p := sourcesPage{Query: url.Values{}, After: in.arg("after"), At: time.Now()}
	for _, name := range []string{"owner", "state"} {
		if v := in.arg(name); v != "" {
			p.Query.Set(name, v)
		}
	}
	show := func(err error) (*page, error) {
		return &page{view: "sources", title: "Sources", place: "sources", data: p}, err
	}
	state := in.arg("state")
	if state != "" && !slices.Contains(p.States(), state) {
		return show(wrongForm("state", state, "it is "+strings.Join(p.States(), ", ")))
	}
	var list []queue.Source
	for after, end := p.After, time.Now().Add(searchTime); ; {
		part, err := queue.ListSources(ctx, fleet, in.arg("owner"), after, pageSize, true)
		if err != nil {
			return show(err)
		}
		list = append(list, slices.DeleteFunc(part.List, func(s queue.Source) bool {
			return state != "" && s.State != state
		})...)
		p.Sources = part
		if after = part.Next; after == "" || len(list) >= pageSize || time.Now().After(end) {
			p.List = list
			return show(nil)
		}
	}
}
