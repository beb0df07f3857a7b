package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// print writes the tables: saturation, then open loops.
func (r *Report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s to %s\n", r.Machine, r.Started.Format("2006-01-02 15:04:05"), r.Ended.Format("15:04:05 UTC"))
	for _, load := range both() {
		var list []*Result
		for i := range r.Cases {
			if r.Cases[i].Load == load && len(r.Cases[i].Rounds) > 0 {
				list = append(list, &r.Cases[i])
			}
		}
		if len(list) == 0 {
			continue
		}
		fmt.Fprintln(out)
		if err := r.printTable(out, list); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nMedians of rounds; ± is half the range. µs/event is CPU time. MB are resident, peak and at the end.")
	if slices.ContainsFunc(r.Cases, func(c Result) bool { _, d := c.quiet(); return d && len(c.Rounds) > 0 }) {
		fmt.Fprintf(out, "* all rounds were disturbed: others used more than %.2g cores.\n", foreignLimit)
	}
	return nil
}

func (r *Report) printTable(out io.Writer, list []*Result) error {
	var columns []metric
	for _, m := range metrics() {
		if m.shown && slices.ContainsFunc(list, func(r *Result) bool { _, ok := r.summary(m.name); return ok }) {
			columns = append(columns, m)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	beside := slices.ContainsFunc(list, func(r *Result) bool { return r.Beside })
	head := []string{"case"}
	if beside {
		head = append(head, "pinwheel/it")
	}
	for _, m := range columns {
		head = append(head, m.name)
	}
	fmt.Fprintln(w, strings.Join(append(head, "±", "rounds"), "\t")+"\t")
	for _, one := range list {
		cells := row(one, columns)
		if beside {
			cells = slices.Insert(cells, 1, r.ratio(one))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	return w.Flush()
}

// ratio is what Pinwheel has in the same round of the same, divided by what c has.
func (r *Report) ratio(c *Result) string {
	same := c.Case
	same.System = ours
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

// row is a case's line. Its ± is that of its first column, which is why one looks at it.
func row(r *Result, columns []metric) []string {
	rounds, disturbed := r.quiet()
	cells := []string{r.Name()}
	for _, m := range columns {
		s, ok := r.summary(m.name)
		if !ok {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.*f", m.digits, s.median))
	}
	spread := "-"
	if s, ok := r.summary(r.headline()); ok {
		spread = fmt.Sprintf("%.0f %%", 100*s.spread())
	}
	mark := ""
	if disturbed {
		mark = "*"
	}
	return append(cells, spread, fmt.Sprintf("%d%s", len(rounds), mark))
}

// headline is the metric that a case is about.
func (r *Result) headline() string {
	if r.Load == saturation {
		return "events/s"
	}
	return "p50 ms"
}

// line is a round in short.
func (r *Round) line() string {
	var parts []string
	for _, name := range []string{"events/s", "p50 ms", "p99 ms", "p99 beside/alone", "fleet µs/event"} {
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
