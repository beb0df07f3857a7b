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

// plots are all pictures of r, those that would be empty left out.
func (r *Report) plots() []plot {
	var list []plot
	for _, load := range both() {
		var cases []*Result
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Load == load && len(c.Rounds) > 0 {
				cases = append(cases, c)
			}
		}
		for i, part := range slices.Collect(slices.Chunk(cases, most)) {
			suffix := ""
			if i > 0 {
				suffix = fmt.Sprintf("-%d", i+1)
			}
			if load == saturation {
				list = append(list,
					plot{"events" + suffix + ".svg", "Events per second", bars("events per second, median and range of rounds", part, "events/s")},
					plot{"rounds" + suffix + ".svg", "Throughput by round", byRound(part)},
					plot{"cpu" + suffix + ".svg", "CPU time per event", bars("CPU time of the fleet or peer, µs per event, median and range of rounds", part, "fleet µs/event")},
					plot{"memory" + suffix + ".svg", "Memory", bars("resident memory of the fleet or peer at its peak, MB", part, "fleet peak MB")})
			} else {
				list = append(list, plot{"latency" + suffix + ".svg", "Latency", latencies(part)})
			}
		}
	}
	return list
}

// latencies are curves over percentiles, stretched so that each further nine has the same room.
func latencies(cases []*Result) string {
	c := chart{title: "latency from intended send to reply, ms", xLabel: "percentile", yLabel: "ms", yLog: true}
	nines := func(p float64) float64 { return -math.Log10(1 - p/100) }
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		c.xTicks = append(c.xTicks, mark{nines(p), fmt.Sprintf("%g %%", p)})
	}
	for _, one := range cases {
		l := line{name: one.Name()}
		for _, p := range one.curve() {
			if p.Percentile < 100 {
				l.points = append(l.points, point{x: nines(p.Percentile), y: p.MS})
			}
		}
		c.lines = append(c.lines, l)
	}
	return c.svg()
}

// byRound shows how much rounds differ. Those that were disturbed are hollow.
func byRound(cases []*Result) string {
	c := chart{title: "events per second of each round; hollow: disturbed", xLabel: "round", yLabel: "events/s"}
	rounds, least, top := 0, math.Inf(1), 0.0
	for _, one := range cases {
		l := line{name: one.Name()}
		for i, r := range one.Rounds {
			v := r.Metrics["events/s"]
			least, top = min(least, v), max(top, v)
			l.points = append(l.points, point{float64(i + 1), v, r.Disturbed})
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
