package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// action is what a command does with letters.
type action struct {
	verb   string // "replayed", "removed"
	dryRun bool
}

// act starts a job that acts on letters, and follows it to its end. It prints the result for each letter, and the
// totals. If the command is interrupted, it cancels the job.
func act[Q any](ctx context.Context, t *terminal.Terminal, c *control.Client, start control.Endpoint[Q, control.Job],
	r Q, a action, asJSON bool) error {
	j, err := control.Ask(ctx, c, start, r)
	if err != nil {
		return listsLetters(err)
	}
	p := &progress{to: t, verb: a.verb, asJSON: asJSON, live: config.IsTerminal(t.Out) && !asJSON}
	j, err = control.FollowJob(ctx, c, j, func(l control.JobLetter, now control.Job, skipped int) {
		if skipped > 0 {
			fmt.Fprintf(t.Err, "pinwheel: %s before this one are not listed\n", counted(skipped, "letter"))
		}
		step := deadletter.Progress{Letter: l.Letter(), Counts: now.Counts}
		if l.Error != "" {
			step.Err = errors.New(l.Error)
		}
		p.step(step)
	})
	p.clear()
	if !asJSON {
		fmt.Fprintln(t.Out, summary(a, j.Counts))
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w after %d of at most %d letters; nothing is half done, and the same command goes on with the others", ctx.Err(), j.Done+j.Failed, j.Total)
	case err != nil:
		return err
	case j.State == "failed":
		return errors.New(j.Error)
	case j.State != "done":
		return fmt.Errorf("job %s of node %s was %s", j.Job, j.Node, j.State)
	case j.Failed > 0:
		return silent(exitFailure)
	}
	return nil
}

func summary(a action, t deadletter.Counts) string {
	what := a.verb
	if a.dryRun {
		what = "would be " + what
	}
	text := fmt.Sprintf("%d %s", t.Done, what)
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d not", t.Failed)
	}
	return text
}

// progress prints the result for each letter, one line each. On a terminal it also shows a last line with the progress.
type progress struct {
	to           *terminal.Terminal
	verb         string
	asJSON, live bool
	shown        int // letters in the progress line
	last, begun  time.Time
}

func (p *progress) step(s deadletter.Progress) {
	if p.asJSON {
		p.json(s)
		return
	}
	p.clear()
	if s.Err != nil {
		fmt.Fprintln(p.to.Err, "pinwheel:", s.Err.Error())
	} else {
		fmt.Fprintln(p.to.Out, about(s.Letter))
	}
	p.tell(s.Counts.Done+s.Counts.Failed, s.Counts.Total)
}

// tell writes the progress line, at most ten times a second.
func (p *progress) tell(n, total int) {
	now := time.Now()
	if p.begun.IsZero() {
		p.begun = now
	}
	if !p.live || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, 1
	text := fmt.Sprintf("%d of at most %d %s", n, total, p.verb)
	if took := now.Sub(p.begun); took > time.Second {
		text += fmt.Sprintf(", %.0f/s", float64(n)/took.Seconds())
	}
	_, _ = io.WriteString(p.to.Out, text)
}

// clear removes the progress line.
func (p *progress) clear() {
	if p.shown > 0 {
		_, _ = io.WriteString(p.to.Raw.Out, "\r\x1b[K")
		p.shown = 0
	}
}

func (p *progress) json(s deadletter.Progress) {
	line := struct {
		ID    uint64 `json:"id"`
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}{ID: s.Letter.Seq, OK: s.Err == nil}
	if s.Err != nil {
		line.Error = s.Err.Error()
	}
	_ = json.NewEncoder(p.to.Out).Encode(line) // writing to a closed pipe ends the process
}
