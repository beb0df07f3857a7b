package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// curve is a scenario that is measured at several sizes of something, on one nats-server.
type curve struct {
	report.CurveText
	at       []int    // sizes
	lines    []string // lines of one plot; a single "" when there is only one
	scenario func(at int, line string) scenario
}

// Number of events at each size: enough for some seconds of the slowest known case.
const (
	curveEvents    = 40_000
	coldEvents     = 2_500 // nearly each event makes an isolate
	quickEvents    = 200
	quickSizes     = 2
	ioSlots        = 8
	ioPending      = 512 // more than four processes hold, so that no process waits for events
	ioEvents       = 1_000
	backlogOwners  = 16 // so many that no owner has more than a process queues
	biggestBody    = 1_000_000
	biggestBacklog = 1_000_000
)

func curves() []curve {
	return []curve{
		{
			CurveText: report.CurveText{Name: "owners", Axis: "owners", About: "echo of so many owners in turn; there is room for 500 isolates"},
			at:        []int{1, 10, 100, 1000, 10_000}, scenario: overOwners,
		}, {
			CurveText: report.CurveText{Name: "workers", Axis: "workers deployed",
				About: "echo of one worker beside so many that have no events"},
			at: []int{1, 100, 1000, 10_000}, scenario: overWorkers,
		}, {
			CurveText: report.CurveText{
				Name: "active", Axis: "workers of one owner", Load: report.OpenLoop,
				About: "echo of so many workers of one owner in turn, 200 events/s; warm is the share of events that found a context of their worker",
			},
			at: []int{1, 8, 9, 50, 500}, scenario: overActive,
		}, {
			CurveText: report.CurveText{
				Name: "threads", Axis: "threads",
				About: "echo of one owner on so many threads: isolates pinned to threads, and isolates that threads share",
			},
			at: threadCounts(runtime.NumCPU()), lines: []string{string(workers.Pinned), string(workers.Shared)},
			scenario: overThreads,
		}, {
			CurveText: report.CurveText{Name: "body", Axis: "body", About: "a body of that size goes in and comes back",
				Label: size},
			at: []int{0, 1 << 10, 16 << 10, 64 << 10, biggestBody}, scenario: overBodies,
		}, {
			CurveText: report.CurveText{
				Name: "processes", Axis: "processes",
				About: fmt.Sprintf("a subrequest that takes 50 ms, by processes of one thread with %d slots: they are bound by their slots, not by CPU", ioSlots),
			},
			at: []int{1, 2, 4}, scenario: overProcesses,
		}, {
			CurveText: report.CurveText{
				Name: "backlog", Axis: "events pending",
				About: fmt.Sprintf("echo of %d owners while so many events are stored: for each reply another event is published", backlogOwners),
			},
			at: []int{10, 100, 1000, 10_000, 100_000, biggestBacklog}, scenario: overBacklog,
		},
	}
}

// curveTexts are what a report says about curves.
func curveTexts() []report.CurveText {
	list := contentions()
	for _, c := range curves() {
		list = append(list, c.CurveText)
	}
	return list
}

func overOwners(at int, _ string) scenario {
	n := curveEvents
	if at >= 1000 {
		n = coldEvents
	}
	return scenario{name: "echo", parts: []part{echo()}, owners: at, events: n, warm: true}
}

func overWorkers(at int, _ string) scenario {
	return scenario{name: "echo", parts: []part{echo()}, owners: 1, deployed: at, events: curveEvents, warm: true}
}

func overActive(at int, _ string) scenario {
	return scenario{name: "echo", parts: copies(echo(), at), owners: 1, rate: 200, warm: true}
}

func overThreads(at int, line string) scenario {
	mode := workers.Mode(line)
	return scenario{name: "echo", parts: echoIn(mode), owners: 1, events: curveEvents, warm: true,
		env: []string{"PINWHEEL_THREADS=" + strconv.Itoa(at)}}
}

// threadCounts returns the thread counts for a machine with that many CPUs. The last count is higher than the number of
// CPUs.
func threadCounts(cpus int) []int {
	list := []int{1, 2, min(cpus, 32), min(2*cpus, 64)}
	slices.Sort(list)
	return slices.Compact(list)
}

func overBodies(at int, _ string) scenario {
	n := curveEvents
	if at > 1<<10 {
		n = max(300, 150_000_000/at)
	}
	body := func(b []byte, id int) []byte { return sized(b, id, at) }
	return scenario{name: "mirror", parts: []part{mirror(body)}, owners: 1, events: min(n, curveEvents), warm: true}
}

func overProcesses(at int, _ string) scenario {
	return scenario{
		name: "io", parts: []part{inout()}, owners: backlogOwners, events: ioEvents * at, processes: at, pending: ioPending,
		warm: true,
		env:  []string{"PINWHEEL_THREADS=1", "PINWHEEL_SLOTS=" + strconv.Itoa(ioSlots), "PINWHEEL_WINDOW=32"},
	}
}

func overBacklog(at int, _ string) scenario {
	return scenario{name: "echo", parts: []part{echo()}, owners: backlogOwners, events: curveEvents, pending: at,
		warm: true}
}

// size formats a number of bytes.
func size(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return strconv.Itoa(n)
	}
}

func curveNames() []string {
	var names []string
	for _, c := range curves() {
		names = append(names, c.Name)
	}
	return names
}

func findCurve(name string) (*curve, error) {
	list := curves()
	i := slices.IndexFunc(list, func(c curve) bool { return c.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("--curve %q: it is all, or of %s", name, strings.Join(curveNames(), ", "))
	}
	return &list[i], nil
}

// scenarioOf returns the scenario of a case.
func scenarioOf(c report.Case) (*scenario, error) {
	if c.Curve == "" {
		return findScenario(c.Scenario)
	}
	found, err := findCurve(c.Curve)
	if err != nil {
		return nil, err
	}
	sc := found.scenario(c.At, c.Line)
	return &sc, nil
}

func newCurvesCommand() *cobra.Command {
	o := defaultOptions()
	o.repeats = 1
	names, quick := []string{"all"}, false
	c := &cobra.Command{
		Use: "curves", Short: "Measure events/s, p50 and CPU per event over owners, workers, threads, bodies, processes and backlog", Args: cobra.NoArgs,
		Long: "Measures each curve at each of its sizes, round by round. Three rounds of all take about 15 minutes on a quiet machine of two cores.\n\n" + describeCurves(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			cases, err := o.curveCases(names, quick)
			if err != nil {
				return err
			}
			return measure(cmd.Context(), cmd.OutOrStdout(), o, cases)
		},
	}
	c.Flags().StringSliceVar(&names, "curve", names, "`NAMES` of curves, or all")
	c.Flags().BoolVar(&quick, "quick", false, fmt.Sprintf("the first %d sizes of each, %d events: to see that it works, not how fast", quickSizes,
		quickEvents))
	o.commonFlags(c.Flags())
	return c
}

func describeCurves() string {
	text := ""
	for _, c := range curves() {
		var sizes []string
		for _, at := range c.at {
			sizes = append(sizes, c.Text(at))
		}
		text += fmt.Sprintf("  %-10s %s\n  %-10s %s\n", c.Name, c.About, "", strings.Join(sizes, ", "))
	}
	return text
}

// curveCases returns all sizes and lines of the named curves.
func (o *options) curveCases(names []string, quick bool) ([]report.Case, error) {
	if slices.Contains(names, "all") {
		names = curveNames()
	}
	var list []report.Case
	for _, name := range names {
		c, err := findCurve(name)
		if err != nil {
			return nil, err
		}
		sizes, most := c.at, math.MaxInt
		if quick {
			sizes, most = sizes[:min(quickSizes, len(sizes))], quickEvents
		}
		for _, at := range sizes {
			for _, line := range append(c.lines, "")[:max(1, len(c.lines))] {
				sc := c.scenario(at, line)
				sc.events = min(sc.events, most)
				if quick {
					sc.length = time.Second
				}
				one := o.newCase(&sc, c.LoadOf(), report.TopologyOne, max(1, sc.processes))
				one.Curve, one.At, one.Line, one.Pending = c.Name, at, line, min(sc.pending, most)
				list = append(list, one)
			}
		}
	}
	return list, nil
}
