package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/loadtest/chart"
)

// plot is a picture of a report.
type plot struct {
	File, title string
	SVG         string
}

// most is the highest number of lines or bars in a plot. Further ones go into another plot.
const most = 12

// plots returns all pictures of r.
func (r *Report) plots() []plot {
	var list []plot
	for _, c := range r.sections() {
		list = append(list, c.Plots...)
	}
	return list
}

// loadPlots returns the pictures of the cases of one load.
func loadPlots(load string, cases []*Result) []plot {
	var list []plot
	for i, part := range pictures(cases) {
		suffix, of := "", ""
		if i > 0 {
			suffix = fmt.Sprintf("-%d", i+1)
		}
		if part[0].Beside {
			of = fmt.Sprintf(", owners: %d", part[0].Owners)
		}
		if load == OpenLoop {
			list = append(list, plot{"latency" + suffix + ".svg", "Latency" + of, latencies(part)})
			continue
		}
		list = append(list,
			plot{"events" + suffix + ".svg", "Events per second" + of, medians("events per second, median and range of rounds"+of, part,
				"events/s")},
			plot{"cpu" + suffix + ".svg", "CPU time per event" + of, medians("CPU time of the fleet or peer, µs per event, median and range of rounds"+of, part,
				"fleet µs/event")},
			plot{"memory" + suffix + ".svg", "Memory" + of, medians("resident memory of the fleet or peer at its peak, MB"+of, part,
				"fleet peak MB")})
		if slices.ContainsFunc(part, func(c *Result) bool { return len(c.Rounds) > 1 }) {
			list = append(list, plot{"rounds" + suffix + ".svg", "Throughput by round" + of, byRound(part)})
		}
	}
	return list
}

// pictures groups the cases of each picture: not too many, and systems that are compared stay together.
func pictures(cases []*Result) [][]*Result {
	var list [][]*Result
	for len(cases) > 0 {
		n := 1
		for n < len(cases) && n < most && (!cases[0].Beside || cases[n].Owners == cases[0].Owners) {
			n++
		}
		list, cases = append(list, cases[:n]), cases[n:]
	}
	return list
}

// latencies draws curves over percentiles. Each additional nine has the same width.
func latencies(cases []*Result) string {
	c := chart.Chart{Title: "latency from intended send to reply, ms", XLabel: "percentile", YLabel: "ms", YLog: true}
	nines := func(p float64) float64 { return -math.Log10(1 - p/100) }
	top, labels := 50.0, shortNames(cases)
	for i, one := range cases {
		l := chart.Line{Name: labels[i]}
		for _, p := range one.curve() {
			if p.Percentile < 100 {
				l.Points = append(l.Points, chart.Point{X: nines(p.Percentile), Y: p.MS})
				top = max(top, p.Percentile)
			}
		}
		c.Lines = append(c.Lines, l)
	}
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		if p <= top {
			c.XTicks = append(c.XTicks, chart.Mark{At: nines(p), Text: fmt.Sprintf("%g %%", p)})
		}
	}
	return c.SVG()
}

// byRound shows how much rounds differ. Disturbed rounds are hollow.
func byRound(cases []*Result) string {
	c := chart.Chart{Title: "events per second of each round; hollow: disturbed", XLabel: "round", YLabel: "events/s"}
	rounds, least, top, labels := 0, math.Inf(1), 0.0, shortNames(cases)
	for k, one := range cases {
		l := chart.Line{Name: labels[k]}
		for i, r := range one.Rounds {
			v := r.Metrics["events/s"]
			least, top = min(least, v), max(top, v)
			l.Points = append(l.Points, chart.Point{X: float64(i + 1), Y: v, Hollow: r.Disturbed})
		}
		rounds = max(rounds, len(one.Rounds))
		c.Lines = append(c.Lines, l)
	}
	c.YLog = chart.Wide(least, top)
	for i := 1; i <= rounds; i += 1 + rounds/20 {
		c.XTicks = append(c.XTicks, chart.Mark{At: float64(i), Text: fmt.Sprint(i)})
	}
	return c.SVG()
}

// medians draws the medians of a metric. A case without it has no bar.
func medians(title string, cases []*Result, name string) string {
	var list []chart.Bar
	labels := shortNames(cases)
	for i, c := range cases {
		if s, ok := c.summary(name); ok {
			list = append(list, chart.Bar{Name: labels[i], Median: s.median, Min: s.min, Max: s.max, First: c.System == Ours})
		}
	}
	return chart.Bars(title, list)
}

// shortNames returns the cases' names without their common suffix.
func shortNames(cases []*Result) []string {
	names := make([][]string, len(cases))
	for i, c := range cases {
		names[i] = strings.Fields(c.Name())
	}
	same := func() bool {
		for _, n := range names {
			if len(n) < 2 || n[len(n)-1] != names[0][len(names[0])-1] {
				return false
			}
		}
		return len(names) > 1
	}
	for same() {
		for i, n := range names {
			names[i] = n[:len(n)-1]
		}
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.Join(n, " ")
	}
	return short
}
