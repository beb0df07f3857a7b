package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Compare prints the changes from one report to another: the ratios of medians for each case that both have.
func Compare(out io.Writer, before, after string) error {
	a, err := Read(before, nil)
	if err != nil {
		return err
	}
	b, err := Read(after, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "old: %s\nnew: %s\n", a.Machine, b.Machine)
	if a.Machine.CPU != b.Machine.CPU || a.Machine.CPUs != b.Machine.CPUs {
		fmt.Fprintln(out, "These are two machines: the ratios tell of them, too.")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	found := false
	for i := range b.Cases {
		r := &b.Cases[i]
		if old := a.find(r.Case); old != nil && len(old.Rounds) > 0 && len(r.Rounds) > 0 {
			found = true
			fmt.Fprintf(w, "\n%s\told\tnew\tratio\t\n", r.Name())
			for _, d := range differences(old, r) {
				fmt.Fprintln(w, d.String())
			}
		}
	}
	if !found {
		return fmt.Errorf("%s and %s have no case in common", before, after)
	}
	return w.Flush()
}

// find returns nil when there is no such case.
func (r *Report) find(c Case) *Result {
	for i := range r.Cases {
		if r.Cases[i].Case == c {
			return &r.Cases[i]
		}
	}
	return nil
}

// difference is a metric, before and after.
type difference struct {
	metric   metric
	old, new summary
}

func differences(a, b *Result) []difference {
	var list []difference
	for _, m := range metrics() {
		x, ok1 := a.summary(m.name)
		y, ok2 := b.summary(m.name)
		if ok1 && ok2 && !m.informative() {
			list = append(list, difference{m, x, y})
		}
	}
	return list
}

// verdict describes the difference in one word.
func (d difference) verdict() string {
	better := d.new.median > d.old.median == d.metric.higher
	switch {
	case !d.old.apart(d.new):
		return "noise"
	case min(d.old.n, d.new.n) < enough:
		return fmt.Sprintf("perhaps: fewer than %d rounds", enough)
	case better:
		return "better"
	default:
		return "worse"
	}
}

func (d difference) String() string {
	ratio := "-"
	if d.old.median != 0 {
		ratio = fmt.Sprintf("%.3f", d.new.median/d.old.median)
	}
	side := func(s summary) string {
		return fmt.Sprintf("%.*f ±%.0f %%", d.metric.digits, s.median, 100*s.spread())
	}
	return fmt.Sprintf("  %s\t%s\t%s\t%s\t%s", d.metric.name, side(d.old), side(d.new), ratio, d.verdict())
}
