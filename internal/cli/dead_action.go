package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer"
)

// action is what replay and rm do with the letters they select.
type action struct {
	verb   string // "replayed", "removed"
	dryRun bool
	do     func(ctx context.Context, c *remote, d *consumer.DeadLetters, s consumer.Selection, each func(consumer.Progress)) (consumer.Tally, error)
}

// replayed has letters replayed, edited before if ed says so by an editor.
func (e *env) replayed(ed *editing, o consumer.ReplayOptions) action {
	return action{"replayed", o.DryRun, func(ctx context.Context, c *remote, d *consumer.DeadLetters, s consumer.Selection, each func(consumer.Progress)) (consumer.Tally, error) {
		if ed.editor {
			if len(s.IDs) != 1 {
				return consumer.Tally{}, usage("--editor edits one letter: name its id")
			}
			l, err := d.Get(ctx, s.IDs[0])
			if err != nil {
				return consumer.Tally{}, err
			}
			if o.Edit.Body, err = e.editBody(ctx, l.Body); err != nil {
				return consumer.Tally{}, err
			}
		}
		o.Runs = whoRuns(c.store)
		o.Untold = func(err error) { fmt.Fprintln(e.err, "pinwheel:", err) }
		return d.ReplayAll(ctx, s, o, each)
	}}
}

func removed(dryRun bool) action {
	return action{"removed", dryRun, func(ctx context.Context, _ *remote, d *consumer.DeadLetters, s consumer.Selection, each func(consumer.Progress)) (consumer.Tally, error) {
		return d.Purge(ctx, s, dryRun, each)
	}}
}

// act does a to the letters that s and args select, and prints what became of each and how many there were.
func (e *env) act(ctx context.Context, a action, s *selection, args []string, asJSON bool) error {
	sel, err := s.selected(args)
	if err != nil {
		return err
	}
	return e.withDead(ctx, func(c *remote, d *consumer.DeadLetters) error {
		p := &progress{e: e, verb: a.verb, asJSON: asJSON, live: isTerminal(e.out) && !asJSON}
		t, err := a.do(ctx, c, d, sel, p.step)
		p.clear()
		var ee *exitError
		if errors.As(err, &ee) {
			return err
		}
		if !asJSON {
			fmt.Fprintln(e.out, tallied(a, t))
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

func tallied(a action, t consumer.Tally) string {
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

// progress prints what becomes of letters: a line for each, or, on a terminal, also one below them that tells how far it is.
type progress struct {
	e            *env
	verb         string
	asJSON, live bool
	shown        int // letters in the last line of all
	last, begun  time.Time
}

func (p *progress) step(s consumer.Progress) {
	if p.asJSON {
		p.json(s)
		return
	}
	p.clear()
	if s.Err != nil {
		fmt.Fprintln(p.e.err, "pinwheel:", printable(s.Err.Error()))
	} else {
		fmt.Fprintln(p.e.out, about(s.Letter))
	}
	p.tell(s.Tally.Done+s.Tally.Failed, s.Tally.Total)
}

// tell writes the line of how far it is, ten times a second.
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

// clear takes that line away.
func (p *progress) clear() {
	if p.shown > 0 {
		_, _ = io.WriteString(p.e.out, "\r\x1b[K")
		p.shown = 0
	}
}

func (p *progress) json(s consumer.Progress) {
	line := struct {
		ID    uint64 `json:"id"`
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}{ID: s.Letter.Seq, OK: s.Err == nil}
	if s.Err != nil {
		line.Error = s.Err.Error()
	}
	_ = json.NewEncoder(p.e.out).Encode(line) // a pipe that nobody reads ends the process by itself
}
