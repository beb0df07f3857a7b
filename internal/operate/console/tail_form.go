package console

import (
	"net/url"
	"regexp"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// tailForm is the data of the live lines of a page.
type tailForm struct {
	Tail  control.Tail      // no owner: none
	Fixed bool              // the page says whose lines they are
	Keep  map[string]string // further parameters of the page
}

// Levels are the levels that a tail may begin at.
func (tailForm) Levels() []string { return []string{"debug", "info", "warn", "error"} }

// TailQuery is the query of the stream.
func (f tailForm) TailQuery() string {
	q := url.Values{}
	for name, v := range map[string]string{"owner": f.Tail.Owner, "worker": f.Tail.Worker, "only": f.Tail.Only,
		"level": f.Tail.Level, "grep": f.Tail.Grep} {
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
	return r
}

// workerTail is the form of a page of a worker.
func (in inputs) workerTail(owner, worker string) tailForm {
	f := tailForm{Tail: in.tailOf(), Fixed: true}
	f.Tail.Owner, f.Tail.Worker = owner, worker
	return f
}

// eventTail is the form of the page of an event. Lines that the event's ID matches are those of the event, and its
// ends. The ID is a publisher's: it is no expression.
func (in inputs) eventTail(p eventPage) tailForm {
	f := in.workerTail(p.Owner, p.Worker)
	if f.Tail.Grep == "" {
		f.Tail.Grep = regexp.QuoteMeta(p.ID)
	}
	f.Keep = map[string]string{"owner": p.Owner, "worker": p.Worker, "id": p.ID}
	return f
}
