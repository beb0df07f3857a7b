package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/loadtest/chart"
)

// CurveText is what a report says about a curve: cases that are measured at several sizes of something.
type CurveText struct {
	Name, About string
	Axis        string              // what the size is a size of
	Load        string              // "": saturation
	Label       func(at int) string // label of a size; nil: the number
}

// Grouped formats a number with a space between thousands.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

func (c CurveText) LoadOf() string { return cmp.Or(c.Load, Saturation) }

// headline is the main metric of the curve.
func (c CurveText) headline() string {
	if c.LoadOf() == OpenLoop {
		return "p50 ms"
	}
	return "events/s"
}

func (c CurveText) Text(at int) string {
	if c.Label != nil {
		return c.Label(at)
	}
	return Grouped(at)
}

// curveSection returns a curve's table and its picture.
func (r *Report) curveSection(name string, cases []*Result) section {
	c := CurveText{Name: name, Axis: name} // the file is from another version of this program
	for _, known := range r.Curves {
		if known.Name == name {
			c = known
		}
	}
	title := strings.ToUpper(c.Axis[:1]) + c.Axis[1:]
	return section{title, c.About, c.table(cases), []plot{{c.Name + ".svg", title, c.svg(cases)}}}
}

// curveColumns are the metrics in a curve's table. The metric of the cores shows whether the machine was busy.
func curveColumns() []string {
	return []string{"p99 ms", "warm %", "cpu µs/event", "fleet µs/event", "nats µs/event", "fleet cores", "nats cores",
		"load cores", "foreign cores", "fleet peak MB"}
}

// table has a row for each size of each line. × is the ratio of the events/s, or p50, to those of the line's first
// size.
func (c CurveText) table(cases []*Result) table {
	columns := slices.DeleteFunc(metrics(), func(m metric) bool {
		_, ok := cases[0].summary(m.name)
		return !ok || !slices.Contains(curveColumns(), m.name)
	})
	head := []string{c.Axis, c.headline(), "×"}
	for _, m := range columns {
		head = append(head, m.name)
	}
	digits := metrics()[slices.IndexFunc(metrics(), func(m metric) bool { return m.name == c.headline() })].digits
	t := table{append(head, "±", "rounds")}
	for _, line := range lineNames(cases) {
		var base float64
		for _, one := range cases {
			if one.Line != line {
				continue
			}
			rate, _ := one.summary(c.headline())
			if base == 0 {
				base = rate.median
			}
			cells := []string{strings.TrimSpace(c.Text(one.At) + " " + line), fmt.Sprintf("%.*f", digits, rate.median),
				fmt.Sprintf("%.2f", rate.median/base)}
			for _, m := range columns {
				s, _ := one.summary(m.name)
				cells = append(cells, fmt.Sprintf("%.*f", m.digits, s.median))
			}
			t = append(t, append(cells, certainty(one)...))
		}
	}
	return t
}

// lineNames returns the lines of a curve, in their order.
func lineNames(cases []*Result) []string {
	var list []string
	for _, c := range cases {
		if !slices.Contains(list, c.Line) {
			list = append(list, c.Line)
		}
	}
	return list
}

// svg draws events/s above CPU time per event. The sizes are at equal distances.
func (c CurveText) svg(cases []*Result) string {
	rate := c.panel(cases, []string{c.headline()})
	rate.Title, rate.YLabel = "events per second, median and range of rounds", "events/s"
	if c.LoadOf() == OpenLoop {
		rate.Title, rate.YLabel = "p50, ms, median and range of rounds", "ms"
	}
	cost := c.panel(cases, []string{"fleet µs/event", "nats µs/event"})
	cost.Title, cost.YLabel = "CPU time per event of the fleet and of nats-server, µs", "µs"
	if _, ok := cases[0].summary("cpu µs/event"); ok {
		cost = c.panel(cases, []string{"cpu µs/event"})
		cost.Title, cost.YLabel = "CPU time per event, µs", "µs"
	}
	return chart.Stacked(rate, cost)
}

// of says which processes a metric belongs to. It is "" if there is only one group.
func of(name string) string {
	who, _, _ := strings.Cut(name, " µs/event")
	if who == "events/s" || who == "p50 ms" || who == "cpu" {
		return ""
	}
	return who
}

// panel has a line for each combination of a metric and a line.
func (c CurveText) panel(cases []*Result, names []string) chart.Chart {
	p := chart.Chart{XLabel: c.Axis, Height: chart.PlotHeight * 2 / 3}
	var sizes []int
	for _, one := range cases {
		if !slices.Contains(sizes, one.At) {
			sizes = append(sizes, one.At)
			p.XTicks = append(p.XTicks, chart.Mark{At: float64(len(sizes)), Text: c.Text(one.At)})
		}
	}
	least, most := math.Inf(1), 0.0
	for _, name := range names {
		for _, l := range lineNames(cases) {
			drawn := chart.Line{Name: strings.TrimSpace(of(name) + " " + l)}
			for _, one := range cases {
				s, ok := one.summary(name)
				if one.Line != l || !ok || s.median <= 0 {
					continue
				}
				_, disturbed := one.quiet()
				drawn.Points = append(drawn.Points, chart.Point{X: float64(slices.Index(sizes, one.At) + 1), Y: s.median,
					Low: s.min, High: s.max, Hollow: disturbed})
				least, most = min(least, s.median), max(most, s.median)
			}
			p.Lines = append(p.Lines, drawn)
		}
	}
	p.YLog = chart.Wide(least, most)
	return p
}
