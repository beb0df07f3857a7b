package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// options are the parsed command line.
type options struct {
	scenarios  []string
	loads      []string
	topologies []string
	cells      []string
	processes  []int
	owners     []int // numbers of owners for peers

	rounds   int
	repeats  int // repetitions of a run that other processes disturbed
	events   int // 0: the scenario's
	rate     int // 0: the scenario's
	duration time.Duration
	patience time.Duration // how long to wait without any reply before missing events count as lost
	quiet    time.Duration // maximum wait for other processes to be quiet

	tails int // tails of the owners beside each run

	pinwheel string // binary; "": built by this program
	stores   string // folder for what NATS stores; "": a temporary one. Only tests set it
	env      []string
	report.Files
}

func defaultOptions() *options {
	return &options{
		scenarios: []string{"echo"}, loads: []string{report.Saturation, report.OpenLoop},
		topologies: []string{report.TopologyOne}, cells: []string{""}, processes: []int{1}, owners: []int{1, 100},
		rounds: 3, repeats: 2, patience: 20 * time.Second, quiet: 3 * time.Second,
	}
}

func (o *options) scenarioFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.scenarios, "scenario", o.scenarios, "`NAMES` of scenarios, or all (see loadtest list)")
	f.StringSliceVar(&o.loads, "load", o.loads, "saturation: a stream filled beforehand is drained; open: a fixed rate, whatever the replies do")
	f.StringSliceVar(&o.cells, "cell", o.cells, "PINWHEEL_CELL of the fleet: shared, own, or a NAME; each is a case of its own")
	f.StringSliceVar(&o.topologies, "topology", o.topologies, "embedded: NATS in the fleet; one: a nats-server beside it; r3: three, everything stored thrice")
	f.IntSliceVar(&o.processes, "processes", o.processes, "`NUMBERS` of fleet processes, as PINWHEEL_PROCESSES; 1 is without a supervisor")
}

func (o *options) commonFlags(f *pflag.FlagSet) {
	f.IntVar(&o.rounds, "rounds", o.rounds, "rounds; every round runs all cases, one after the other")
	f.IntVar(&o.events, "events", 0, "events of a saturation run (default: the scenario's)")
	f.IntVar(&o.rate, "rate", 0, "events per second of an open loop (default: the scenario's)")
	f.DurationVar(&o.duration, "duration", o.duration, "length of an open loop (default: the scenario's, mostly 10s)")
	f.DurationVar(&o.patience, "patience", o.patience, "time without a reply after which what is missing counts as lost; three times as long before the first")
	f.IntVar(&o.tails, "tails", 0, "tails of the owners that are asked for beside each run")
	o.runFlags(f)
}

// runFlags are the flags of all measurements in rounds.
func (o *options) runFlags(f *pflag.FlagSet) {
	f.IntVar(&o.repeats, "repeats", o.repeats, "how often a run is repeated that others disturbed (more than 0.25 cores)")
	f.DurationVar(&o.quiet, "quiet", o.quiet, "longest wait, before a run, for others on this machine to be quiet")
	f.StringVar(&o.pinwheel, "pinwheel", "", "`PATH` of the pinwheel binary (default: built from the module of this directory)")
	f.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` for the fleet, like PINWHEEL_THREADS=4; may be repeated")
	f.StringVar(&o.JSON, "json", "", "write everything measured to `FILE`, for --compare")
	o.fileFlags(f)
}

// fileFlags are the flags for output files of a report.
func (o *options) fileFlags(f *pflag.FlagSet) {
	f.StringVar(&o.HTML, "html", "", "write a page with plots to `FILE`")
	f.StringVar(&o.Doc, "doc", "", "write tables and plots into a section of a Markdown page: `PAGE#SECTION`")
	f.StringVar(&o.Plots, "plots", "", "write the plots as SVG files to `DIR`")
}

// bound is what a flag may be.
type bound struct {
	what string // the flag with its value
	ok   bool
	want string
}

// checkBounds returns an error for the first flag that is not what it may be.
func checkBounds(list []bound) error {
	for _, b := range list {
		if !b.ok {
			return fmt.Errorf("%s: it is %s", b.what, b.want)
		}
	}
	return nil
}

// check checks the command line before anything is started.
func (o *options) check() error {
	if err := checkBounds([]bound{
		{fmt.Sprintf("--rounds %d", o.rounds), o.rounds >= 1 && o.rounds <= 1000, "1 to 1000"},
		{fmt.Sprintf("--repeats %d", o.repeats), o.repeats >= 0 && o.repeats <= 100, "0 to 100"},
		{fmt.Sprintf("--events %d", o.events), o.events >= 0 && o.events <= 10_000_000, "at most 10000000"},
		{fmt.Sprintf("--tails %d", o.tails), o.tails >= 0 && o.tails <= 10_000, "at most 10000"},
		{fmt.Sprintf("--rate %d", o.rate), o.rate >= 0 && o.rate <= 1_000_000, "at most 1000000"},
		{fmt.Sprintf("--duration %s", o.duration), o.duration == 0 || o.duration >= 100*time.Millisecond &&
			o.duration <= 24*time.Hour, "100ms to 24h"},
		{fmt.Sprintf("--patience %s", o.patience), o.patience >= time.Second && o.patience <= time.Hour, "1s to 1h"},
	}); err != nil {
		return err
	}
	for _, e := range o.env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fmt.Errorf("--env %q: write it as NAME=VALUE", e)
		}
	}
	if o.Doc != "" {
		return report.CheckDocument(o.Doc)
	}
	return nil
}

// cases returns all requested combinations. A load that a scenario does not have is left out when both loads were
// requested. It is an error when only that load was requested.
func (o *options) cases() ([]report.Case, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	names := o.scenarios
	if slices.Contains(names, "all") {
		names = scenarioNames()
	}
	for _, load := range o.loads {
		if load != report.Saturation && load != report.OpenLoop {
			return nil, fmt.Errorf("--load %q: it is %s or %s", load, report.Saturation, report.OpenLoop)
		}
	}
	var list []report.Case
	for _, name := range names {
		s, err := findScenario(name)
		if err != nil {
			return nil, err
		}
		loads := slices.DeleteFunc(slices.Clone(o.loads), func(load string) bool { return !slices.Contains(s.loads, load) })
		if len(loads) == 0 {
			return nil, fmt.Errorf("--load %s: scenario %s has only %s", strings.Join(o.loads, ","), name,
				strings.Join(s.loads, ","))
		}
		for _, topology := range o.topologies {
			if !slices.Contains(topologies(), topology) {
				return nil, fmt.Errorf("--topology %q: it is one of %s", topology, strings.Join(topologies(), ", "))
			}
			for _, processes := range o.processes {
				if processes < 1 || processes > 64 {
					return nil, fmt.Errorf("--processes %d: it is 1 to 64", processes)
				}
				for _, load := range loads {
					for _, cell := range o.cells {
						c := o.newCase(s, load, topology, processes)
						c.Cell = cell
						list = append(list, c)
					}
				}
			}
		}
	}
	return list, nil
}

func (o *options) newCase(s *scenario, load, topology string, processes int) report.Case {
	c := report.Case{System: report.Ours, Scenario: s.name, Load: load, Topology: topology, Processes: processes,
		Owners: s.owners}
	if load == report.Saturation {
		c.Events = cmp.Or(o.events, s.events)
	} else {
		c.Rate, c.Seconds = cmp.Or(o.rate, s.rate), cmp.Or(o.duration, s.length, openLength).Seconds()
	}
	if !s.warm { // a worker of its own for each event
		c.Owners = max(c.Events, int(float64(c.Rate)*c.Seconds))
	}
	return c
}
