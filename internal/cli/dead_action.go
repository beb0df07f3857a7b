package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// action is what replay and rm do with the selected letters.
type action struct {
	does   string // name of the endpoint that does it
	verb   string // "replayed", "removed"
	dryRun bool
	do     func(ctx context.Context, c *control.Remote, d *deadletter.Store, s deadletter.Selection, each func(deadletter.Progress)) (deadletter.Counts, error)
}

// replayed is the action that replays letters. It edits them first if ed says so, in an editor if ed asks for one.
func (e *env) replayed(ed *editing, o deadletter.ReplayOptions) action {
	return action{"dead.replay", "replayed", o.DryRun, func(ctx context.Context, c *control.Remote, d *deadletter.Store, s deadletter.Selection, each func(deadletter.Progress)) (deadletter.Counts, error) {
		if ed.editor {
			if len(s.IDs) != 1 {
				return deadletter.Counts{}, usage("--editor edits one letter: name its id")
			}
			l, err := d.Get(ctx, s.IDs[0])
			if err != nil {
				return deadletter.Counts{}, err
			}
			if o.Edit.Body, err = e.editBody(ctx, l.Body); err != nil {
				return deadletter.Counts{}, err
			}
		}
		o.Runs = control.WhoRuns(c.Workers)
		o.Unnoted = func(err error) { fmt.Fprintln(e.err, "pinwheel:", err) }
		return d.ReplayAll(ctx, s, o, each)
	}}
}

func removed(dryRun bool) action {
	return action{"dead.purge", "removed", dryRun, func(ctx context.Context, _ *control.Remote, d *deadletter.Store, s deadletter.Selection, each func(deadletter.Progress)) (deadletter.Counts, error) {
		return d.Purge(ctx, s, dryRun, each)
	}}
}

// act does a to the letters that s and args select. It prints the result for each letter, and the totals.
func (e *env) act(ctx context.Context, a action, s *selection, args []string, asJSON bool) error {
	sel, err := s.selected(args)
	if err != nil {
		return err
	}
	return e.withDead(ctx, func(c *control.Remote, d *deadletter.Store) error {
		p := &progress{e: e, verb: a.verb, asJSON: asJSON, live: config.IsTerminal(e.out) && !asJSON}
		t, err := a.do(ctx, c, d, sel, p.step)
		p.clear()
		if t.Done > 0 && !a.dryRun {
			owner, _, _ := strings.Cut(s.Worker, "/")
			if s.Owner != "" || owner == s.Worker {
				owner = s.Owner
			}
			record(ctx, e, a.does, owner, s.asked(sel))
		}
		var ee *exitError
		if errors.As(err, &ee) {
			return err
		}
		if !asJSON {
			fmt.Fprintln(e.out, summary(a, t))
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w after %d of at most %d letters; nothing is half done, and the same command goes on with the others", ctx.Err(), t.Done+t.Failed, t.Total)
		case err == nil && t.Failed > 0:
			return silent(exitFailure)
		}
		return err
	})
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
	e            *env
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
		fmt.Fprintln(p.e.err, "pinwheel:", s.Err.Error())
	} else {
		fmt.Fprintln(p.e.out, about(s.Letter))
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
	_, _ = io.WriteString(p.e.out, text)
}

// clear removes the progress line.
func (p *progress) clear() {
	if p.shown > 0 {
		_, _ = io.WriteString(p.e.raw.out, "\r\x1b[K")
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
	_ = json.NewEncoder(p.e.out).Encode(line) // writing to a closed pipe ends the process
}
