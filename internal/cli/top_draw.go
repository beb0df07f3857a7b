package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/control"
)

// flow is what a fleet did between two snapshots. It is also what --json prints.
type flow struct {
	At        time.Time     `json:"at"`
	Rates                   // of all processes
	Stored    storedCounts  `json:"stored"`
	Processes []processFlow `json:"processes"`
	Owners    []ownerFlow   `json:"owners"`
	// Missing are nodes that another process names and that did not answer.
	Missing []string `json:"missing,omitempty"`
}

// Rates are per second. Durations are in milliseconds; nil = nothing was counted.
type Rates struct {
	Events      float64  `json:"eventsPerSecond"` // attempts that ended
	Failed      float64  `json:"failedPerSecond"`
	Retried     float64  `json:"retriedPerSecond"`
	Parked      float64  `json:"parkedPerSecond"`
	WaitP50     *float64 `json:"waitP50Ms"`
	WaitP99     *float64 `json:"waitP99Ms"`
	DurationP50 *float64 `json:"durationP50Ms"`
	DurationP99 *float64 `json:"durationP99Ms"`
}

type storedCounts struct {
	Events        uint64   `json:"events"` // waiting and running
	OldestSeconds *float64 `json:"oldestSeconds"`
	Parked        uint64   `json:"parked"`
	Dead          uint64   `json:"dead"`
}

type processFlow struct {
	Node     string `json:"node"`
	Build    string `json:"build"`
	New      bool   `json:"new,omitempty"` // it was not there in the last snapshot: it has no rates
	Draining bool   `json:"draining,omitempty"`
	Rates
	Running  int   `json:"running"`
	Queued   int   `json:"queued"`
	Held     int   `json:"held"`
	Isolates int   `json:"isolates"`
	Heap     int64 `json:"heapBytes"`
}

type ownerFlow struct {
	Owner   string `json:"owner"`
	Queued  int    `json:"queued"`
	Running int    `json:"running"`
	Parking bool   `json:"parking,omitempty"`
}

// between are the counts of one process between two snapshots.
type between struct {
	seconds                 float64
	failed, retried, parked uint64
	wait, duration          control.Histogram
}

func (b between) rates() Rates {
	r := Rates{
		Events: float64(b.duration.Count) / b.seconds, Failed: float64(b.failed) / b.seconds,
		Retried: float64(b.retried) / b.seconds, Parked: float64(b.parked) / b.seconds,
	}
	r.percentiles(b.wait, b.duration)
	return r
}

func (r *Rates) percentiles(wait, duration control.Histogram) {
	for _, q := range []struct {
		into **float64
		of   control.Histogram
		q    float64
	}{{&r.WaitP50, wait, 0.5}, {&r.WaitP99, wait, 0.99}, {&r.DurationP50, duration, 0.5}, {&r.DurationP99, duration, 0.99}} {
		if d, ok := q.of.Quantile(q.q); ok {
			*q.into = new(float64(d.Microseconds()) / 1000)
		}
	}
}

// add adds the rates of a process. Percentiles cannot be added.
func (r *Rates) add(o Rates) {
	r.Events += o.Events
	r.Failed += o.Failed
	r.Retried += o.Retried
	r.Parked += o.Parked
}

// compare says what happened between two snapshots. Each process is measured by its own clock.
func compare(before, now snapshot) flow {
	f := flow{At: now.at, Processes: []processFlow{}, Owners: []ownerFlow{}}
	earlier := map[string]control.Flow{}
	for _, p := range before.flows {
		earlier[p.ID] = p
	}
	owners := map[string]*ownerFlow{}
	var wait, duration control.Histogram
	for _, p := range now.flows {
		one := processFlow{
			Node: p.Node, Build: p.Build, Draining: p.Draining, Running: p.Running, Queued: p.Queued, Held: p.Held, Isolates: p.Isolates, Heap: p.Heap,
		}
		last, known := earlier[p.ID]
		if one.New = !known || !p.At.After(last.At); !one.New {
			b := between{
				seconds: p.At.Sub(last.At).Seconds(), failed: p.Failed - min(p.Failed, last.Failed), retried: p.Retried - min(p.Retried, last.Retried),
				parked: p.Parked - min(p.Parked, last.Parked), wait: p.Wait.Since(last.Wait), duration: p.Duration.Since(last.Duration),
			}
			one.Rates = b.rates()
			f.add(one.Rates)
			wait, duration = wait.Add(b.wait), duration.Add(b.duration)
		}
		f.Processes = append(f.Processes, one)
		for _, o := range p.Owners {
			if owners[o.Owner] == nil {
				owners[o.Owner] = &ownerFlow{Owner: o.Owner}
			}
			sum := owners[o.Owner]
			sum.Queued, sum.Running, sum.Parking = sum.Queued+o.Queued, sum.Running+o.Running, sum.Parking || o.Parking
		}
	}
	f.percentiles(wait, duration)
	for _, o := range owners {
		f.Owners = append(f.Owners, *o)
	}
	slices.SortFunc(f.Owners, func(a, b ownerFlow) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(b.Running, a.Running), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(f.Processes, func(a, b processFlow) int { return cmp.Compare(a.Node, b.Node) })
	for _, m := range now.missing {
		f.Missing = append(f.Missing, m.Node)
	}
	slices.Sort(f.Missing)
	if s := now.stored.Events; s != nil {
		if f.Stored.Events = s.Messages; !s.Oldest.IsZero() {
			f.Stored.OldestSeconds = new(max(0, now.at.Sub(s.Oldest).Seconds()))
		}
	}
	if s := now.stored.Parked; s != nil {
		f.Stored.Parked = s.Messages
	}
	if s := now.stored.Dead; s != nil {
		f.Stored.Dead = s.Messages
	}
	return f
}

// draw makes lines of an update, as many and as long as there is room. 0 = any.
func draw(f flow, width, height int) string {
	var b strings.Builder
	processes := fmt.Sprintf("%d processes", len(f.Processes))
	if len(f.Processes) == 1 {
		processes = "1 process"
	}
	if width > 0 {
		processes += "   q: end"
	}
	fmt.Fprintf(&b, "pinwheel top   %s   %s\n\n", f.At.Local().Format("15:04:05"), processes)
	grid{right: []int{1, 4, 6}, rows: [][]string{
		{"events/s", rate(f.Events), "   runs", "p50", milli(f.DurationP50), "p99", milli(f.DurationP99)},
		{"failed/s", rate(f.Failed), "   waits", "p50", milli(f.WaitP50), "p99", milli(f.WaitP99)},
		{"retried/s", rate(f.Retried), "   stored", "events", fmt.Sprint(f.Stored.Events), "oldest", age(f.Stored.OldestSeconds)},
		{"parked/s", rate(f.Parked), "", "parked", fmt.Sprint(f.Stored.Parked), "dead letters", fmt.Sprint(f.Stored.Dead)},
	}}.write(&b)
	b.WriteByte('\n')
	g := grid{right: []int{1, 2, 3, 4, 5, 6, 7}, rows: [][]string{{"PROCESS", "EVENTS/S", "P99", "RUNNING", "QUEUED", "HELD", "ISOLATES", "HEAP", ""}}}
	for _, p := range f.Processes {
		note, events := "", rate(p.Events)
		if p.New {
			note, events = "new", "-"
		}
		if p.Draining {
			note = "draining"
		}
		g.rows = append(g.rows, []string{
			printable(p.Node), events, milli(p.DurationP99), fmt.Sprint(p.Running), fmt.Sprint(p.Queued), fmt.Sprint(p.Held), fmt.Sprint(p.Isolates),
			fmt.Sprintf("%d MB", p.Heap>>20), note,
		})
	}
	for _, node := range f.Missing {
		g.rows = append(g.rows, []string{printable(node), "-", "-", "-", "-", "-", "-", "-", "does not answer"})
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
			g.rows = append(g.rows, []string{printable(o.Owner), fmt.Sprint(o.Queued), fmt.Sprint(o.Running), note})
		}
		g.write(&b)
	}
	return fit(b.String(), width, height)
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

// rate is a number per second, with a digit behind the point when it is small.
func rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// milli is a duration of so many milliseconds.
func milli(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms < 1:
		return fmt.Sprintf("%.0f µs", *ms*1000)
	case *ms < 10:
		return fmt.Sprintf("%.1f ms", *ms)
	case *ms < 10_000:
		return fmt.Sprintf("%.0f ms", *ms)
	}
	return fmt.Sprintf("%.0f s", *ms/1000)
}

// age is a time of so many seconds.
func age(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return time.Duration(*seconds * float64(time.Second)).Round(time.Second).String()
}
