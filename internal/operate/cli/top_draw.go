package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// draw makes lines of an update, as many and as long as there is room. 0 = any.
func draw(f flow.Summary, width, height int) string {
	var b strings.Builder
	processes := processesText(len(f.Processes))
	if width > 0 {
		processes += "   q: end"
	}
	fmt.Fprintf(&b, "pinwheel top   %s   %s\n\n", f.At.Local().Format("15:04:05"), processes)
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
	g := grid{right: []int{1, 2, 3, 4, 5, 6, 7},
		rows: [][]string{{"PROCESS", "EVENTS/S", "P99", "RUNNING", "QUEUED", "HELD", "ISOLATES", "HEAP", ""}}}
	for _, p := range f.Processes {
		note, events := "", flow.Rate(p.Events)
		if p.New {
			note, events = "new", "-"
		}
		if p.Draining {
			note = "draining"
		}
		g.rows = append(g.rows, []string{
			p.Node, events, flow.Milliseconds(p.DurationP99), fmt.Sprint(p.Running), fmt.Sprint(p.Queued), fmt.Sprint(p.Held),
			fmt.Sprint(p.Isolates),
			fmt.Sprintf("%d MB", p.Heap>>20), note,
		})
	}
	for _, node := range f.Missing {
		g.rows = append(g.rows, []string{node, "-", "-", "-", "-", "-", "-", "-", "does not answer"})
	}
	g.write(&b)
	b.WriteByte('\n')
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
	fmt.Fprintf(&b, "pinwheel top   %s   owner %s in %s\n\n", f.At.Local().Format("15:04:05"), f.Owner.Owner, processes)
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

// onScreen makes lines that clear what was behind them. The terminal is in raw mode, which adds no carriage return.
func onScreen(text string) string {
	return strings.ReplaceAll(text, "\n", "\x1b[K\r\n") + "\x1b[K"
}
