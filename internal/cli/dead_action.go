package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// action is what replay and rm do with the letters they select.
type action struct {
	verb string // "replayed", "removed"
	// broken: it can be done to a letter that cannot be decoded.
	broken bool
	rate   float64 // at most so many a second; 0 = no limit
	do     func(ctx context.Context, d *consumer.DeadLetters, l *events.DeadLetter) error
}

func replay(o consumer.ReplayOptions) action {
	return action{"replayed", false, o.Rate, func(ctx context.Context, d *consumer.DeadLetters, l *events.DeadLetter) error {
		return d.Replay(ctx, l, o)
	}}
}

func remove() action {
	return action{"removed", true, 0, func(ctx context.Context, d *consumer.DeadLetters, l *events.DeadLetter) error {
		return d.Remove(ctx, l.Seq)
	}}
}

// tally is a run of an action: how many letters it was done to, and how many not.
type tally struct {
	action
	dryRun       bool
	pace         *rate.Limiter
	done, failed int
}

// act does a to the letters that s and args select, and prints what became of each and how many there were.
func (e *env) act(ctx context.Context, a action, s *selection, args []string) error {
	ids, filter, err := s.action(args)
	if err != nil {
		return err
	}
	t := &tally{action: a, dryRun: s.dryRun, pace: rate.NewLimiter(rate.Inf, 1)}
	if a.rate > 0 {
		t.pace.SetLimit(rate.Limit(a.rate))
	}
	return e.withDead(ctx, func(c *remote, d *consumer.DeadLetters) error {
		letters := getAll(ctx, d, ids)
		if len(ids) == 0 {
			if letters, err = c.listed(ctx, d, filter); err != nil {
				return err
			}
		}
		err := e.actOnAll(ctx, t, d, letters)
		e.printTally(t)
		if err == nil && t.failed > 0 {
			return silent(exitFailure)
		}
		return err
	})
}

func (e *env) actOnAll(ctx context.Context, t *tally, d *consumer.DeadLetters, letters iter.Seq2[*events.DeadLetter, error]) error {
	for l, err := range letters {
		if l == nil {
			return err
		}
		if errors.Is(err, consumer.ErrUndecodable) && t.broken && l.Seq != 0 {
			err = nil
		}
		if err == nil && !t.dryRun {
			if err := t.pace.Wait(ctx); err != nil {
				return err
			}
			err = t.do(ctx, d, l)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.failed++
			fmt.Fprintln(e.err, "pinwheel:", err)
		default:
			t.done++
			fmt.Fprintln(e.out, about(l))
		}
	}
	return nil
}

func (e *env) printTally(t *tally) {
	what := t.verb
	if t.dryRun {
		what = "would be " + what
	}
	fmt.Fprintf(e.out, "%d %s", t.done, what)
	if t.failed > 0 {
		fmt.Fprintf(e.out, ", %d not", t.failed)
	}
	fmt.Fprintln(e.out)
}

// getAll reads the letters of these ids. One that cannot be read comes as its number with the error; a nil letter is the end.
func getAll(ctx context.Context, d *consumer.DeadLetters, ids []uint64) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		for _, id := range ids {
			l, err := d.Get(ctx, id)
			if l == nil {
				l = &events.DeadLetter{Seq: id}
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// listed are the letters of the filter that are there now: what arrives meanwhile nobody has seen, and what
// is replayed and fails again is not to be replayed for ever. A nil letter with an error of NATS ends them.
func (c *remote) listed(ctx context.Context, d *consumer.DeadLetters, f consumer.Filter) (iter.Seq2[*events.DeadLetter, error], error) {
	stream, err := c.js.Stream(ctx, consumer.StreamDead)
	if err != nil {
		return nil, fmt.Errorf("dead letters: stream %s: %w", consumer.StreamDead, err)
	}
	last := stream.CachedInfo().State.LastSeq
	return func(yield func(*events.DeadLetter, error) bool) {
		for l, err := range d.List(ctx, f) {
			if l != nil && l.Seq > last {
				return
			}
			if l == nil && errors.Is(err, consumer.ErrUndecodable) {
				l = &events.DeadLetter{} // its number is in the error
			}
			if !yield(l, err) {
				return
			}
		}
	}, nil
}
