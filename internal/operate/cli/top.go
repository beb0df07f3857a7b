package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// Bounds of --interval.
const (
	leastInterval = 200 * time.Millisecond
	mostInterval  = time.Hour
)

func newTopCommand(e *env) *cobra.Command {
	var interval time.Duration
	var count int
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "top", Short: "Show what the fleet does, live", Args: cobra.NoArgs,
		Long: "Shows events per second, how long they wait and run, what is stored, and each process, until q or Ctrl-C.\n" +
			"Rates are those since the last update. Percentiles are estimates from the buckets of histograms.\n" +
			"Without a terminal it prints one table after the other. With PINWHEEL_OWNER it shows the workers of this owner.",
		Example: "  pinwheel top\n  pinwheel top --count 1 --json | jq .eventsPerSecond",
	}, func(ctx context.Context, _ []string) error {
		switch {
		case interval < leastInterval || interval > mostInterval:
			return usage("--interval is %s: it is %s to %s", interval, leastInterval, mostInterval)
		case count < 0:
			return usage("--count is %d: it is 0 or more", count)
		}
		s := &sampling{every: interval, count: count, asJSON: asJSON}
		if e.isOwner() {
			return e.withProcess(func(c *control.Client) error {
				return s.watch(ctx, e.Terminal, func(ctx context.Context) (flow.Snapshot, error) {
					s, err := flow.TakeOf(ctx, c, e.cfg.Owner, "")
					if errors.Is(err, flow.ErrNoFleet) {
						err = nats.ErrNoResponders // withProcess says what that means for an owner
					}
					return s, err
				},
					func(before, now flow.Snapshot) update { return ownUpdate(flow.BetweenOf(e.cfg.Owner, before, now)) })
			})
		}
		nc, err := e.dial("")
		if err != nil {
			return err
		}
		defer nc.Close()
		if err := refuseUser(ctx, nc, "top"); err != nil {
			return err
		}
		client := control.NewClient(nc, e.cfg.Prefix, e.cfg.ControlToken)
		return s.watch(ctx, e.Terminal, func(ctx context.Context) (flow.Snapshot, error) { return flow.Take(ctx, client) },
			func(before, now flow.Snapshot) update { return fleetUpdate(flow.Between(before, now)) })
	})
	f := c.Flags()
	f.DurationVar(&interval, "interval", 2*time.Second, "time between two updates, "+leastInterval.String()+" to "+
		mostInterval.String())
	f.IntVar(&count, "count", 0, "end after this many updates; 0 = go on")
	f.BoolVar(&asJSON, "json", false, "print one JSON object an update")
	return c
}

// sampling is how often the fleet is looked at.
type sampling struct {
	every  time.Duration
	count  int // 0 = until it is ended
	asJSON bool
}

// update is what happened between two looks. As JSON it is what --json prints.
type update interface {
	// draw makes lines, as many and as long as there is room. 0 = any.
	draw(width, height int) string
}

type (
	fleetUpdate flow.Summary
	ownUpdate   flow.OfOwner
)

func (f fleetUpdate) draw(width, height int) string { return draw(flow.Summary(f), width, height) }

func (f ownUpdate) draw(width, height int) string { return drawOwn(flow.OfOwner(f), width, height) }

// watch shows what happens between looks until ctx is done, a key ends it, or it was shown often enough. The first look
// only begins to count.
func (s *sampling) watch(ctx context.Context, t *terminal.Terminal, take func(context.Context) (flow.Snapshot, error),
	between func(before, now flow.Snapshot) update) error {
	d := openDisplay(t, s.asJSON)
	defer d.close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	d.keys(end)
	before, err := take(ctx)
	if err != nil {
		return byHand(ctx, err)
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for shown := 0; s.count == 0 || shown < s.count; shown++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := take(ctx)
		if err != nil {
			return byHand(ctx, err)
		}
		did := between(before, now)
		if before = now; s.asJSON {
			err = json.NewEncoder(t.Out).Encode(did)
		} else {
			err = d.show(did)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byHand is err, unless ctx is done: then the command was ended by hand, which is no error.
func byHand(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// display is where updates are shown: a terminal, whose content comes back in the end, or a file.
type display struct {
	out      io.Writer
	terminal *os.File    // nil: none
	in       *os.File    // nil: no keys
	restore  *term.State // of in
}

func openDisplay(t *terminal.Terminal, asJSON bool) *display {
	s := &display{out: t.Out}
	if out, ok := t.Raw.Out.(*os.File); ok && !asJSON && term.IsTerminal(int(out.Fd())) {
		s.terminal = out
		fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
	}
	if in, ok := t.In.(*os.File); ok && s.terminal != nil && term.IsTerminal(int(in.Fd())) {
		if state, err := term.MakeRaw(int(in.Fd())); err == nil {
			s.in, s.restore = in, state
		}
	}
	return s
}

func (s *display) close() {
	if s.restore != nil {
		_ = term.Restore(int(s.in.Fd()), s.restore)
	}
	if s.terminal != nil {
		fmt.Fprint(s.terminal, "\x1b[?25h\x1b[?1049l")
	}
}

// keys calls end when q, Esc or Ctrl-C is pressed.
func (s *display) keys(end func()) {
	if s.in == nil {
		return
	}
	go func() {
		key := make([]byte, 1)
		for {
			if _, err := s.in.Read(key); err != nil || key[0] == 'q' || key[0] == 3 || key[0] == 27 {
				end()
				return
			}
		}
	}()
}

// show draws an update.
func (s *display) show(f update) error {
	if s.terminal == nil {
		_, err := fmt.Fprintln(s.out, f.draw(0, 0))
		return err
	}
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	_, err = fmt.Fprint(s.terminal, "\x1b[H"+onScreen(f.draw(width, height))+"\x1b[J")
	return err
}
