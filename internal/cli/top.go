package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pinwheel-run/pinwheel/internal/control"
	"github.com/pinwheel-run/pinwheel/internal/flow"
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
			"Without a terminal it prints one table after the other.",
		Example: "  pinwheel top\n  pinwheel top --count 1 --json | jq .eventsPerSecond",
	}, func(ctx context.Context, _ []string) error {
		switch {
		case interval < leastInterval || interval > mostInterval:
			return usage("--interval is %s: it is %s to %s", interval, leastInterval, mostInterval)
		case count < 0:
			return usage("--count is %d: it is 0 or more", count)
		}
		if err := refuseOwner(e, "top"); err != nil {
			return err
		}
		nc, err := e.dial("")
		if err != nil {
			return err
		}
		defer nc.Close()
		if err := refuseUser(ctx, nc, "top"); err != nil {
			return err
		}
		return watchFlow(ctx, e, control.NewClient(nc, e.cfg.Prefix, e.cfg.ControlToken), interval, count, asJSON)
	})
	f := c.Flags()
	f.DurationVar(&interval, "interval", 2*time.Second, "time between two updates, "+leastInterval.String()+" to "+mostInterval.String())
	f.IntVar(&count, "count", 0, "end after this many updates; 0 = go on")
	f.BoolVar(&asJSON, "json", false, "print one JSON object an update")
	return c
}

// watchFlow shows the fleet until ctx is done, a key ends it, or it was shown often enough. The first snapshot only
// begins to count.
func watchFlow(ctx context.Context, e *env, client *control.Client, interval time.Duration, count int, asJSON bool) error {
	s := openDisplay(e, asJSON)
	defer s.close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	s.keys(end)
	before, err := flow.Take(ctx, client)
	if err != nil {
		return byHand(ctx, err)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for shown := 0; count == 0 || shown < count; shown++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := flow.Take(ctx, client)
		if err != nil {
			return byHand(ctx, err)
		}
		did := flow.Between(before, now)
		if before = now; asJSON {
			err = json.NewEncoder(e.out).Encode(did)
		} else {
			err = s.show(did)
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

func openDisplay(e *env, asJSON bool) *display {
	s := &display{out: e.out}
	if out, ok := e.raw.out.(*os.File); ok && !asJSON && term.IsTerminal(int(out.Fd())) {
		s.terminal = out
		fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
	}
	if in, ok := e.in.(*os.File); ok && s.terminal != nil && term.IsTerminal(int(in.Fd())) {
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
func (s *display) show(f flow.Summary) error {
	if s.terminal == nil {
		_, err := fmt.Fprintln(s.out, draw(f, 0, 0))
		return err
	}
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	_, err = fmt.Fprint(s.terminal, "\x1b[H"+onScreen(draw(f, width, height))+"\x1b[J")
	return err
}
