package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/operate/queue"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
)

// isolatesPage is the data of the page Isolates.
type isolatesPage struct {
	Pools   []control.Pool
	Missing []control.Member
}

func showIsolates(ctx context.Context, fleet *control.Client, _ inputs) (*page, error) {
	pools, missing, err := fleet.Pools(ctx)
	if err != nil {
		return nil, err
	}
	return &page{view: "isolates", title: "Isolates", place: "isolates", data: isolatesPage{pools, missing}}, nil
}

// Background is how many threads of a process run events of owners that take more than their share.
func (isolatesPage) Background(p control.Pool) (n int) {
	for _, t := range p.Threads {
		if t.Background {
			n++
		}
	}
	return n
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

// advice says what to do about a line: a page of the console does it, or words do.
type advice struct {
	Text string
	Page *pair // title and path; nil: no page does it
}

// pagesFor are the pages that do, or show, what a check asks for. Text replaces the command of a terminal.
var pagesFor = map[string]advice{
	"cells":        {"", &pair{"Cells of each process", "/cells"}},
	"dead":         {"", &pair{"Look at the newest: replay, edit or remove them", "/dead"}},
	"parked":       {"They run when their owners have room.", &pair{"Raise the limits of an owner", "/owners?sort=traffic"}},
	"processes":    {"", &pair{"Processes that answer", "/"}},
	"paused":       {"", &pair{"What is paused, to resume it", "/queue"}},
	"sources":      {"", &pair{"Sources with their errors", "/sources"}},
	"progress":     {"", &pair{"What each process holds", "/"}},
	"redeliveries": {"", &pair{"What each process holds", "/"}},
	"workers":      {"", &pair{"Workers", "/workers"}},
}

// Advice is what to do about a line.
func (doctorPage) Advice(l doctor.Line) (a advice) {
	if l.Level != doctor.OK {
		a = pagesFor[l.Check]
	}
	if a.Text == "" && !(a.Page != nil && strings.HasPrefix(l.Do, "pinwheel ")) {
		a.Text = l.Do
	}
	return a
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

// eventPage is the data of the page of an event: all that the fleet knows of it.
type eventPage struct {
	Owner, Worker, ID string
	Letters           []letterPage
	Waiting           []control.WaitingEvent
	Runs              []*runs.Record // ended attempts, the oldest first
	Off               bool           // the fleet has no run history
	Steps             []step
	Newest            int // among so many of the newest letters it was looked for; 0: among all
	Message           *queue.Message
	tailForm
}

// Last is the newest attempt that is recorded; nil: there is none.
func (p eventPage) Last() *runs.Record {
	if len(p.Runs) == 0 {
		return nil
	}
	return p.Runs[len(p.Runs)-1]
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
			p.Letters = append(p.Letters, letterPage{LetterJSON: l})
		}
	}
	if letters.Next != 0 {
		p.Newest = max(letters.Scanned, len(letters.Letters))
	}
	if p.Waiting, err = waits(ctx, fleet, p); err != nil {
		return nil, err
	}
	if err := p.history(ctx, fleet); err != nil {
		return nil, err
	}
	if len(p.Runs) > 0 && len(p.Letters)+len(p.Waiting) == 0 {
		p.Message = queue.FindMessage(ctx, fleet, p.Owner, p.Worker, p.ID)
	}
	p.Steps = p.timeline()
	p.tailForm = in.eventTail(p)
	return &page{view: "event", title: "Event " + p.ID, place: "dead", data: p}, nil
}

// waits looks for an event among those that wait for their time. It does not look at all when there are very many.
func waits(ctx context.Context, fleet *control.Client, p eventPage) (found []control.WaitingEvent, err error) {
	r := control.ListWaiting{Owner: p.Owner, Worker: p.Worker, Limit: 1000}
	for range maxWaitingPages {
		list, err := control.Ask(ctx, fleet, control.SchedulesWaiting, r)
		if err != nil {
			return nil, err
		}
		for _, w := range list.Events {
			if w.ID == p.ID {
				found = append(found, w)
			}
		}
		if r.After = list.Next; r.After == 0 || len(found) > 0 {
			break
		}
	}
	return found, nil
}

// maxWaitingPages is how many answers waits reads.
const maxWaitingPages = 20
