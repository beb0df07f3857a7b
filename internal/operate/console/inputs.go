package console

import (
	"net/http"
	"net/url"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// inputs are what a request says: in its path, its query and its form.
type inputs struct{ http *http.Request }

func (in inputs) path(name string) string { return in.http.PathValue(name) }

func (in inputs) query() url.Values { return in.http.URL.Query() }

// arg is a parameter of the URL.
func (in inputs) arg(name string) string { return in.query().Get(name) }

// form is a field of a form.
func (in inputs) form(name string) string { return in.http.PostForm.Get(name) }

// either is a field of a form, or else a parameter of the URL: a form that was refused is shown again.
func (in inputs) either(name string) string {
	if in.http.PostForm.Has(name) {
		return in.form(name)
	}
	return in.arg(name)
}

// tailForm is the data of the live lines of a page.
type tailForm struct {
	Tail  control.Tail      // no owner: none
	Fixed bool              // the page says whose lines they are
	Keep  map[string]string // further parameters of the page
}

// Levels are the levels that a tail may begin at.
func (tailForm) Levels() []string { return events.LogLevels }

// TailQuery is the query of the stream.
func (f tailForm) TailQuery() string {
	q := url.Values{}
	for name, v := range map[string]string{"owner": f.Tail.Owner, "worker": f.Tail.Worker, "only": f.Tail.Only,
		"level": f.Tail.Level, "grep": f.Tail.Grep, "event": f.Tail.EventID} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return "?" + q.Encode()
}

// tailOf is the tail that the URL asks for.
func (in inputs) tailOf() (r control.Tail) {
	r.Owner, r.Worker, r.Only, r.Level, r.Grep = in.arg("owner"), in.arg("worker"), in.arg("only"), in.arg("level"),
		in.arg("grep")
	r.EventID = in.arg("event")
	return r
}

// workerTail is the form of a page of a worker.
func (in inputs) workerTail(owner, worker string) tailForm {
	f := tailForm{Tail: in.tailOf(), Fixed: true}
	f.Tail.Owner, f.Tail.Worker = owner, worker
	return f
}

// eventTail is the form of the page of an event.
func (in inputs) eventTail(p eventPage) tailForm {
	f := in.workerTail(p.Owner, p.Worker)
	f.Tail.EventID = p.ID
	f.Keep = map[string]string{"owner": p.Owner, "worker": p.Worker, "id": p.ID}
	return f
}
