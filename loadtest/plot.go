package main

import (
	"fmt"
	"math"
	"slices"
)

// plot is a picture of a report.
type plot struct {
	file, title string
	svg         string
}

// most is how many lines or bars a plot has; more make another plot.
const most = 12

// plots are all pictures of r.
func (r *Report) plots() []plot {
	var list []plot
	for _, c := range r.chapters() {
		list = append(list, c.plots...)
	}
	return list
}

// loadPlots are the pictures of cases of one load.
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
		if load == openLoop {
			list = append(list, plot{"latency" + suffix + ".svg", "Latency" + of, latencies(part)})
			continue
		}
		list = append(list,
			plot{"events" + suffix + ".svg", "Events per second" + of, bars("events per second, median and range of rounds"+of, part, "events/s")},
			plot{"cpu" + suffix + ".svg", "CPU time per event" + of, bars("CPU time of the fleet or peer, µs per event, median and range of rounds"+of, part, "fleet µs/event")},
			plot{"memory" + suffix + ".svg", "Memory" + of, bars("resident memory of the fleet or peer at its peak, MB"+of, part, "fleet peak MB")})
		if slices.ContainsFunc(part, func(c *Result) bool { return len(c.Rounds) > 1 }) {
			list = append(list, plot{"rounds" + suffix + ".svg", "Throughput by round" + of, byRound(part)})
		}
	}
	return list
}

// pictures are the cases that go into one picture each: not too many, and of those beside others the ones that are to be compared.
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

// latencies are curves over percentiles, stretched so that each further nine has the same room.
func latencies(cases []*Result) string {
	c := chart{title: "latency from intended send to reply, ms", xLabel: "percentile", yLabel: "ms", yLog: true}
	nines := func(p float64) float64 { return -math.Log10(1 - p/100) }
	top, labels := 50.0, shortNames(cases)
	for i, one := range cases {
		l := line{name: labels[i]}
		for _, p := range one.curve() {
			if p.Percentile < 100 {
				l.points = append(l.points, point{x: nines(p.Percentile), y: p.MS})
				top = max(top, p.Percentile)
			}
		}
		c.lines = append(c.lines, l)
	}
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		if p <= top {
			c.xTicks = append(c.xTicks, mark{nines(p), fmt.Sprintf("%g %%", p)})
		}
	}
	return c.svg()
}

// byRound shows how much rounds differ. Those that were disturbed are hollow.
func byRound(cases []*Result) string {
	c := chart{title: "events per second of each round; hollow: disturbed", xLabel: "round", yLabel: "events/s"}
	rounds, least, top, labels := 0, math.Inf(1), 0.0, shortNames(cases)
	for k, one := range cases {
		l := line{name: labels[k]}
		for i, r := range one.Rounds {
			v := r.Metrics["events/s"]
			least, top = min(least, v), max(top, v)
			l.points = append(l.points, point{x: float64(i + 1), y: v, hollow: r.Disturbed})
		}
		rounds = max(rounds, len(one.Rounds))
		c.lines = append(c.lines, l)
	}
	c.yLog = wide(least, top)
	for i := 1; i <= rounds; i += 1 + rounds/20 {
		c.xTicks = append(c.xTicks, mark{float64(i), fmt.Sprint(i)})
	}
	return c.svg()
}
