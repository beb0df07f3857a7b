package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// table has rows of cells. All rows have the same length, and the first row is the head.
type table [][]string

// table returns a table with a row for each case, and a column for each metric that any of them has.
func (r *Report) table(cases []*Result) table {
	var columns []metric
	for _, m := range metrics() {
		if m.shown && slices.ContainsFunc(cases, func(c *Result) bool { _, ok := c.summary(m.name); return ok }) {
			columns = append(columns, m)
		}
	}
	beside := slices.ContainsFunc(cases, func(c *Result) bool { return c.Beside })
	head := []string{"case"}
	if beside {
		head = append(head, "pinwheel/it")
	}
	for _, m := range columns {
		head = append(head, m.name)
	}
	t := table{append(head, "±", "rounds")}
	for _, one := range cases {
		cells := row(one, columns)
		if beside {
			cells = slices.Insert(cells, 1, r.ratio(one))
		}
		t = append(t, cells)
	}
	return t
}

// row returns the row of a case.
func row(r *Result, columns []metric) []string {
	cells := []string{r.Name()}
	for _, m := range columns {
		s, ok := r.summary(m.name)
		if !ok {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.*f", m.digits, s.median))
	}
	return append(cells, certainty(r)...)
}

// certainty shows how far the rounds of a case differ in its headline metric, and how many rounds there are.
func certainty(r *Result) []string {
	rounds, disturbed := r.quiet()
	spread := "-"
	if s, ok := r.summary(r.headline()); ok {
		spread = fmt.Sprintf("%.0f %%", 100*s.spread())
	}
	mark := ""
	if disturbed {
		mark = "*"
	}
	return []string{spread, fmt.Sprintf("%d%s", len(rounds), mark)}
}

// headline is the main metric of a case.
func (r *Result) headline() string {
	switch {
	case r.Call != "":
		return "p50 µs/call"
	case r.Kernel != "":
		return "p50 ms/run"
	case r.Bytes > 0:
		return "MB/s"
	case r.Load == Saturation:
		return "events/s"
	case r.Load == ClosedLoop:
		return "requests/s"
	case r.Load == IdleLoad:
		return "KB/socket"
	case r.Web != "":
		return "p99 ms"
	}
	return "p50 ms"
}

// ratio is Pinwheel's value in the same rounds of the same load, divided by the value of c.
func (r *Report) ratio(c *Result) string {
	same := c.Case
	same.System = Ours
	we := r.find(same)
	if we == nil {
		return "-"
	}
	a, ok1 := we.summary(c.headline())
	b, ok2 := c.summary(c.headline())
	if !ok1 || !ok2 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a.median/b.median)
}

// legend explains the tables.
func (r *Report) legend() string {
	text := "Medians of rounds; ± is half the range of the rounds' events/s or p50. µs/event is CPU time of the fleet (or the peer), of nats-server and of the load program. " +
		"MB are resident memory of the fleet, the most and at the end."
	if slices.ContainsFunc(r.Cases, func(c Result) bool { return c.Web != "" }) {
		text = "Medians of rounds. ± is half the range of the rounds' requests/s, MB/s, p99, KB or p50, and pinwheel/it is Pinwheel's value of that divided by that of the line. " +
			"µs/request is CPU time of the fleet (or the other system), of nats-server and of the load program. MB are resident memory of the fleet, the most and at the end."
	} else if slices.ContainsFunc(r.Cases, func(c Result) bool { return c.Beside }) {
		text += " pinwheel/it is Pinwheel's events/s (open loop: p50) divided by that of the line."
	}
	if slices.ContainsFunc(r.Cases, func(c Result) bool { _, d := c.quiet(); return d && len(c.Rounds) > 0 }) {
		text += fmt.Sprintf(" A * says that all rounds were disturbed: other programs used more than %.2g cores.", ForeignLimit)
	}
	return text
}

// span is the time of the measurement.
func (r *Report) span() string {
	return r.Started.Format("2006-01-02 15:04:05") + " to " + r.Ended.Format("15:04:05 UTC")
}

// Print writes the report for a terminal.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s\n", r.Machine, r.span())
	for _, c := range r.sections() {
		fmt.Fprintln(out)
		if c.title != "" {
			fmt.Fprintf(out, "%s: %s\n", c.title, c.about)
		}
		if err := c.table.print(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", r.legend())
	return err
}

func (t table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, cells := range t {
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	return w.Flush()
}

// markdown is the table for a page.
func (t table) markdown() string {
	var b strings.Builder
	for i, cells := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintln(&b, "|---"+strings.Repeat("|--:", len(cells)-1)+"|")
		}
	}
	return b.String()
}

// Line summarizes a round in one line.
func (r *Round) Line() string {
	var parts []string
	for _, name := range []string{"events/s", "requests/s", "MB/s", "fleet ms/GB", "p50 ms", "p99 ms", "p99 beside/alone",
		"fleet µs/event", "fleet µs/request", "KB/socket"} {
		if v, ok := r.Metrics[name]; ok {
			i := slices.IndexFunc(metrics(), func(m metric) bool { return m.name == name })
			parts = append(parts, fmt.Sprintf("%s %.*f", name, metrics()[i].digits, v))
		}
	}
	if r.Disturbed {
		parts = append(parts, fmt.Sprintf("disturbed by %.2f cores", r.Metrics["foreign cores"]))
	}
	return strings.Join(parts, ", ")
}
