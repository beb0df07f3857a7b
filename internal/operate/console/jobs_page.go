package console

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// choicePage is the data of the forms that act on dead letters.
type choicePage struct {
	Query   url.Values // the filter
	IDs     []string   // or the letters that were chosen one by one
	Letters int        // about how many there are; of those with a filter, about how many there are without texts and times
	All     bool       // there is no filter: all letters of the fleet
	Max     int        // replays that a letter may have had, if the form says nothing
	replayForm
}

// replayForm is what the person wrote in the form of a replay that was refused.
type replayForm struct {
	Rate, To, MaxReplays string
	Force, DryRun        bool
}

func (in inputs) replayForm() replayForm {
	return replayForm{in.form("rate"), in.form("to"), in.form("maxReplays"), in.form("force") != "",
		in.form("dryRun") != ""}
}

// Link is the query of the filter.
func (p choicePage) Link() string { return with(p.Query) }

// chosen is the choice in the query of a URL.
func chosen(ctx context.Context, fleet *control.Client, q url.Values) (p choicePage, err error) {
	p = choicePage{Query: filterQuery(q), IDs: q["ids"], Max: deadletter.DefaultMaxReplays}
	if _, err := letterIDs(p.IDs); err != nil {
		return p, err
	}
	if len(p.IDs) > 0 {
		p.Letters = len(p.IDs)
		return p, nil
	}
	f := filterOf(q)
	switch p.All = q.Get("all") != ""; {
	case !f.Narrow() && !p.All: // the form of a list in which none was chosen
		return p, &control.Error{Code: 400, Text: "which dead letters? Choose some, or all"}
	case f.Narrow():
		p.All = false
	}
	counts, err := control.Ask(ctx, fleet, control.DeadCounts, control.CountLetters{Owner: f.Owner, Worker: f.Worker,
		Kind: f.Kind, Reason: f.Reason, Limit: 1})
	p.Letters = counts.Total // counted a while ago, and not by texts and times
	return p, err
}

// choice has the filter or the letters that a form names, or an address.
func (in inputs) choice() url.Values {
	if in.http.Method == http.MethodPost {
		return in.http.PostForm
	}
	return in.query()
}

func showReplay(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	p, err := chosen(ctx, fleet, in.choice())
	if err != nil {
		return nil, err
	}
	p.replayForm = in.replayForm()
	return &page{view: "replay", title: "Replay dead letters", place: "dead", data: p}, nil
}

func showPurge(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	p, err := chosen(ctx, fleet, in.choice())
	if err != nil {
		return nil, err
	}
	return &page{view: "purge", title: "Remove dead letters", place: "dead", data: p}, nil
}

func letterIDs(texts []string) (ids []uint64, err error) {
	for _, text := range texts {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, wrongForm("ids", text, "each is the number of a letter")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// selection is the choice in a form.
func (in inputs) selection() (s control.Selection, err error) {
	f := in.http.PostForm
	s = control.Selection{Filter: filterOf(f), All: f.Get("all") != "", DryRun: f.Get("dryRun") != ""}
	if s.IDs, err = letterIDs(f["ids"]); err != nil {
		return s, err
	}
	if text := f.Get("limit"); text != "" {
		if s.Limit, err = strconv.Atoi(text); err != nil || s.Limit < 0 {
			return s, wrongForm("limit", text, "it is a number of letters, or empty")
		}
	}
	return s, nil
}

func replay(c *call) (*page, error) {
	s, err := c.selection()
	if err != nil {
		return nil, err
	}
	r := control.Replay{Selection: s, To: c.form("to"), Force: c.form("force") != ""}
	if text := c.form("rate"); text != "" {
		if r.Rate, err = strconv.ParseFloat(text, 64); err != nil || !(r.Rate >= 0 && r.Rate <= math.MaxInt32) {
			return c.again(showReplay, wrongForm("rate", text, "it is a number of letters a second, or empty for as fast as it goes"))
		}
	}
	if text := c.form("maxReplays"); text != "" {
		if r.MaxReplays, err = strconv.Atoi(text); err != nil || r.MaxReplays < 1 {
			return c.again(showReplay, wrongForm("maxReplays", text, "it is 1 or more, or empty"))
		}
	}
	j, err := control.Ask(c.ctx, c.fleet(), control.DeadReplay, r)
	if err != nil {
		return c.again(showReplay, err)
	}
	return c.begun(j, nil)
}

func purge(c *call) (*page, error) {
	s, err := c.selection()
	if err != nil {
		return nil, err
	}
	return c.begun(control.Ask(c.ctx, c.fleet(), control.DeadPurge, s))
}

// begun goes to the page of a job.
func (c *call) begun(j control.Job, err error) (*page, error) {
	if err != nil {
		return nil, err
	}
	return c.done("/jobs/"+j.Job, "The job has begun. It goes on when you leave this page.")
}

// progress is the data of the page of a job.
type progress struct {
	control.Job
	Looked int // at so many letters
	Took   time.Duration
	Left   time.Duration // until the end, at this pace; 0 = it cannot be said
	Became became
}

// Running reports whether the job goes on.
func (p progress) Running() bool { return p.State == "running" }

// Follows reports whether the page changes by itself: the job goes on, or events that it sent again do.
func (p progress) Follows() bool {
	return p.Running() || p.Became.Going > 0 && time.Since(p.Ended) < followEvents
}

// followEvents is how long after a job its page follows the events that it sent again.
const followEvents = 2 * time.Minute

// did says what a job did with letters. A letter that is sent again may die again: that it was sent is no success.
func did(j control.Job) string {
	what := "sent again"
	if j.Does == "purge" {
		what = "removed"
	}
	if j.DryRun {
		what = "would be " + what
	}
	text := number(j.Done) + " " + what
	if j.Failed > 0 {
		text += ", " + number(j.Failed) + " not"
	}
	return text
}

// maxBecame is of how many letters, the last ones, the page of a job tells what became of them.
const maxBecame = 200

// became counts what became of the events that a job sent again.
type became struct {
	Of                                        int // letters that are counted
	Succeeded, Going, Dead, Answered, Unknown int
	Again                                     []*deadletter.Replayed // those that are dead letters again
}

// becameOf asks what became of the letters of a job. A process remembers them for a while after its end.
func becameOf(ctx context.Context, fleet *control.Client, j control.Job) (b became, err error) {
	var ids []uint64
	for _, l := range j.Letters {
		if l.Error == "" {
			ids = append(ids, l.ID)
		}
	}
	if ids = ids[max(0, len(ids)-maxBecame):]; len(ids) == 0 {
		return b, nil
	}
	list, err := control.Ask(ctx, fleet, control.DeadReplays, control.ReplayFilter{IDs: ids, Owner: j.Owner,
		Limit: maxBecame})
	if err != nil {
		return b, err
	}
	b.Of = len(list.Replays)
	for _, r := range list.Replays {
		switch r.State {
		case deadletter.ReplaySucceeded:
			b.Succeeded++
		case deadletter.ReplayWaiting, deadletter.ReplayRunning, deadletter.ReplayPutOff:
			b.Going++
		case deadletter.ReplayDead:
			b.Dead, b.Again = b.Dead+1, append(b.Again, r)
		case deadletter.ReplayFailed:
			b.Answered++
		default:
			b.Unknown++
		}
	}
	const shown = 20
	b.Again = b.Again[max(0, len(b.Again)-shown):]
	return b, nil
}

// progressOf asks how far a job is, and when it has ended, what became of what it sent again.
func progressOf(ctx context.Context, fleet *control.Client, name control.JobName) (p progress, err error) {
	name.Letters = true
	if p.Job, err = control.Ask(ctx, fleet, control.DeadJob, name); err != nil {
		return p, err
	}
	j := p.Job
	p.Looked = j.Done + j.Failed
	end := j.Ended
	if end.IsZero() {
		end = time.Now()
	}
	p.Took = end.Sub(j.Began).Round(time.Second)
	if p.Running() && p.Looked > 0 && j.Total > p.Looked {
		p.Left = (time.Duration(float64(p.Took) / float64(p.Looked) * float64(j.Total-p.Looked))).Round(time.Second)
	}
	if j.Does == "replay" && !j.DryRun && !p.Running() {
		p.Became, err = becameOf(ctx, fleet, j)
	}
	return p, err
}

func (in inputs) jobName() control.JobName { return control.JobName{Job: in.path("job")} }

func showJob(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	j, err := progressOf(ctx, fleet, in.jobName())
	if err != nil {
		return nil, err
	}
	what := map[string]string{"replay": "Replay of dead letters", "purge": "Removal of dead letters"}[j.Does]
	return &page{view: "job", title: what, place: "dead", data: j}, nil
}

func cancelJob(c *call) (*page, error) {
	j, err := control.Ask(c.ctx, c.fleet(), control.DeadCancel, c.jobName())
	if err != nil {
		return nil, err
	}
	return c.done("/jobs/"+j.Job, "The job is told to end: %s.", did(j))
}
