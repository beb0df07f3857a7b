package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
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
	d := t.OpenScreen(s.asJSON)
	defer d.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	d.Keys(end)
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
			err = d.Show(did.draw)
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

// draw makes lines of an update, as many and as long as there is room. 0 = any.
func draw(f flow.Summary, width, height int) string {
	var b strings.Builder
	processes := processesText(len(f.Processes))
	if width > 0 {
		processes += "   q: end"
	}
	fmt.Fprintf(&b, "pinwheel top   %s   %s\n\n", f.At.Local().Format("15:04:05Z07:00"), processes)
	grid{right: []int{1, 4, 6}, rows: [][]string{
		{"events/s", flow.Rate(f.Events), "   runs", "p50", flow.Milliseconds(f.DurationP50), "p99",
			flow.Milliseconds(f.DurationP99)},
		{"failed/s", flow.Rate(f.Failed), "   waits", "p50", flow.Milliseconds(f.WaitP50), "p99", flow.Milliseconds(f.WaitP99)},
		{"retried/s", flow.Rate(f.Retried), "   stored", "events", fmt.Sprint(f.Stored.Events), "oldest",
			flow.Age(f.Stored.OldestSeconds)},
		{"parked/s", flow.Rate(f.Parked), "", "parked", fmt.Sprint(f.Stored.Parked), "dead letters",
			fmt.Sprint(f.Stored.Dead)},
	}}.write(&b)
	b.WriteByte('\n')
	drawProcesses(&b, f)
	b.WriteByte('\n')
	if f.PausedInAll > 0 {
		b.WriteString("Paused: " + strings.Join(f.Paused, ", "))
		if more := f.PausedInAll - len(f.Paused); more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString("\n\n")
	}
	if len(f.Owners) == 0 {
		b.WriteString("No events wait or run.\n")
	} else {
		g := grid{right: []int{1, 2}, rows: [][]string{{"OWNER", "QUEUED", "RUNNING", ""}}}
		for _, o := range f.Owners {
			note := ""
			if o.Parking {
				note = "parks"
			}
			g.rows = append(g.rows, []string{o.Owner, fmt.Sprint(o.Queued), fmt.Sprint(o.Running), note})
		}
		g.write(&b)
	}
	drawWorkers(&b, f.Workers)
	return fit(config.PrintableText(b.String()), width, height)
}

// drawProcesses makes a line for each process. There are columns for cells where some process has any.
func drawProcesses(b *strings.Builder, f flow.Summary) {
	g := grid{right: []int{1, 2, 3, 4, 5, 6, 7}}
	line := func(cells []string, note string, figures ...string) {
		if f.HasCells() {
			figures = append(figures, cells...)
		}
		g.rows = append(g.rows, append(figures, note))
	}
	if f.HasCells() {
		g.right = append(g.right, 8, 9)
	}
	line([]string{"CELLS", "THEIR MEMORY"}, "",
		"PROCESS", "EVENTS/S", "P99", "RUNNING", "QUEUED", "HELD", "ISOLATES", "HEAP")
	for _, p := range f.Processes {
		note, events := "", flow.Rate(p.Events)
		if p.New {
			note, events = "new", "-"
		}
		if p.Draining {
			note = "draining"
		}
		line([]string{fmt.Sprint(p.Cells), fmt.Sprintf("%d MB", p.CellBytes>>20)}, note,
			p.Node, events, flow.Milliseconds(p.DurationP99), fmt.Sprint(p.Running), fmt.Sprint(p.Queued), fmt.Sprint(p.Held),
			fmt.Sprint(p.Isolates), fmt.Sprintf("%d MB", p.Heap>>20))
	}
	for _, node := range f.Missing {
		line([]string{"-", "-"}, "does not answer", node, "-", "-", "-", "-", "-", "-", "-")
	}
	g.write(b)
}

// drawOwn makes lines of an update of an owner.
func drawOwn(f flow.OfOwner, width, height int) string {
	var b strings.Builder
	processes := processesText(f.Processes)
	if len(f.Missing) > 0 {
		processes += "   do not answer: " + strings.Join(f.Missing, ", ")
	}
	if width > 0 {
		processes += "   q: end"
	}
	fmt.Fprintf(&b, "pinwheel top   %s   owner %s in %s\n\n", f.At.Local().Format("15:04:05Z07:00"), f.Owner.Owner, processes)
	note := ""
	if f.Parking {
		note = "parks"
	}
	grid{right: []int{1, 4, 6}, rows: [][]string{
		{"events/s", flow.Rate(f.Events), "   runs", "p50", flow.Milliseconds(f.DurationP50), "p99",
			flow.Milliseconds(f.DurationP99)},
		{"failed/s", flow.Rate(f.Failed), "   now", "running", fmt.Sprint(f.Running), "queued", fmt.Sprint(f.Queued), note},
	}}.write(&b)
	if drawWorkers(&b, f.Workers); len(f.Workers) == 0 {
		b.WriteString("\nNo worker has run since its process started.\n")
	}
	return fit(config.PrintableText(b.String()), width, height)
}

// mostDrawn is how many workers are drawn.
const mostDrawn = 15

func drawWorkers(b *strings.Builder, workers []flow.Worker) {
	if len(workers) == 0 {
		return
	}
	b.WriteByte('\n')
	g := grid{right: []int{1, 2, 3, 4},
		rows: [][]string{{"WORKER", "EVENTS/S", "FAILED/S", "P50", "P99", "STATE", "LAST EVENT"}}}
	for _, w := range workers[:min(mostDrawn, len(workers))] {
		last := "-"
		if !w.Last.IsZero() {
			last = w.Last.Local().Format("15:04:05")
		}
		g.rows = append(g.rows, []string{w.Worker, flow.Rate(w.Events), flow.Rate(w.Failed), flow.Milliseconds(w.P50),
			flow.Milliseconds(w.P99), w.State, last})
	}
	g.write(b)
}

// grid is a table whose numbers stand at the right of their columns: their digits are below one another.
type grid struct {
	right []int // columns with numbers
	rows  [][]string
}

func (g grid) write(b *strings.Builder) {
	widths := map[int]int{}
	for _, row := range g.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range g.rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if slices.Contains(g.right, i) {
				cell = pad + cell
			} else {
				cell += pad
			}
			line += cell + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// fit cuts lines that are too long, and says how many do not fit.
func fit(text string, width, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
		if width > 0 && utf8.RuneCountInString(lines[i]) > width {
			lines[i] = string([]rune(lines[i])[:max(0, width-1)]) + "…"
		}
	}
	if height > 1 && len(lines) > height {
		more := len(lines) - height + 1
		lines = append(lines[:height-1], fmt.Sprintf("… %d more lines", more))
	}
	return strings.Join(lines, "\n")
}
