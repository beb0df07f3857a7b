package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
)

// isolatesPage is the data of the page Isolates.
type isolatesPage struct {
	Pools   []control.Pool
	Missing []control.Member
}

func showIsolates(ctx context.Context, fleet *control.Client, _ inputs) (*page, error) {
	pools, missing, err := fleet.Pools(ctx)
	return &page{view: "isolates", title: "Isolates", place: "isolates", data: isolatesPage{pools, missing}}, err
}

// checkup runs the checks of the doctor: once at a time, and not more often than people need it.
type checkup struct {
	examine func(context.Context) []doctor.Line

	mu    sync.Mutex
	lines []doctor.Line
	at    time.Time
}

// freshFor is how long the results of a checkup are shown.
const freshFor = 10 * time.Second

func (k *checkup) run(ctx context.Context) ([]doctor.Line, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) > freshFor { // also for others, when this person leaves meanwhile
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		k.lines, k.at = k.examine(ctx), time.Now()
	}
	return k.lines, k.at
}

// doctorPage is the data of the page Doctor.
type doctorPage struct {
	Lines []doctor.Line
	At    time.Time
	Worst doctor.Level
}

// Groups are the lines, those together that want the same to be done.
func (p doctorPage) Groups() (groups [][]doctor.Line) {
	for i, l := range p.Lines {
		last := len(groups) - 1
		if i > 0 && l.Do != "" && l.Level == p.Lines[i-1].Level && l.Check == p.Lines[i-1].Check && l.Do == p.Lines[i-1].Do {
			groups[last] = append(groups[last], l)
			continue
		}
		groups = append(groups, []doctor.Line{l})
	}
	return groups
}

// Count is how many lines have a level.
func (p doctorPage) Count(level string) (n int) {
	for _, l := range p.Lines {
		if string(l.Level) == level {
			n++
		}
	}
	return n
}

func showDoctor(c *call) (*page, error) {
	found, at := c.checkup.run(c.ctx)
	lines := slices.Clone(found)
	rank := map[doctor.Level]int{doctor.Bad: -2, doctor.Warn: -1}
	slices.SortStableFunc(lines, func(a, b doctor.Line) int { return rank[a.Level] - rank[b.Level] })
	return &page{view: "doctor", title: "Doctor", place: "doctor", data: doctorPage{lines, at, doctor.Worst(lines)}}, nil
}

// auditPage is the data of the page Audit.
type auditPage struct {
	Changes []*audit.Record // the newest first
	Older   int             // that have no room
	Cut     bool            // there are newer ones that were not read
	Query   url.Values
}

// maxChanges is how many changes the page shows, and maxChangePages how many answers it reads for them: the fleet tells
// the oldest first.
const maxChanges, maxChangePages = 200, 20

func listAudit(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	p, r := auditPage{Query: q}, control.ListAudit{Owner: q.Get("owner"), Since: cmp.Or(q.Get("since"), "24h"),
		Limit: 1000}
	for range maxChangePages {
		list, err := control.Ask(ctx, fleet, control.AuditRecords, r)
		if err != nil {
			return nil, err
		}
		p.Changes = append(p.Changes, list.Changes...)
		if over := len(p.Changes) - maxChanges; over > 0 {
			p.Changes, p.Older = slices.Clone(p.Changes[over:]), p.Older+over
		}
		if r.After = list.Next; r.After == 0 {
			break
		}
	}
	slices.Reverse(p.Changes)
	p.Cut = r.After != 0
	return &page{view: "audit", title: "Audit", place: "audit", data: p}, nil
}

// eventPage is the data of the page of an event: all that the fleet knows of it.
type eventPage struct {
	Owner, Worker, ID string
	Letters           []*events.LetterJSON
	Waiting           []control.WaitingEvent
	tailForm
}

// showEvent looks for an event by its ID among the newest dead letters and the events that wait.
func showEvent(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	p := eventPage{Owner: in.arg("owner"), Worker: in.arg("worker"), ID: in.arg("id")}
	if p.Owner == "" || p.ID == "" {
		return nil, &control.Error{Code: 400, Text: "owner and id are missing: which event?"}
	}
	r := control.ListLetters{Filter: control.Filter{Owner: p.Owner, Worker: p.Worker, Text: p.ID}, Newest: true}
	r.Limit = pageSize
	letters, err := control.Ask(ctx, fleet, control.DeadList, r)
	if err != nil {
		return nil, err
	}
	for _, l := range letters.Letters {
		if l.EventID == p.ID {
			p.Letters = append(p.Letters, l)
		}
	}
	waiting, err := control.Ask(ctx, fleet, control.SchedulesWaiting,
		control.ListWaiting{Owner: p.Owner, Worker: p.Worker, Limit: 1000})
	if err != nil {
		return nil, err
	}
	for _, w := range waiting.Events {
		if w.ID == p.ID {
			p.Waiting = append(p.Waiting, w)
		}
	}
	p.tailForm = in.eventTail(p)
	return &page{view: "event", title: "Event " + p.ID, place: "dead", data: p}, nil
}
