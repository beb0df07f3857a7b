package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// webOptions are what HTTP is measured with.
type webOptions struct {
	*options
	web         string
	systems     []string
	calls       []string
	kernels     []string
	processes   int // of Pinwheel
	connections int
	sockets     int
	bodyMiB     int
}

func defaultWebOptions() *webOptions {
	o := &webOptions{options: defaultOptions(), web: report.WebJSON, calls: report.Calls(), kernels: report.Kernels(),
		processes: 1, connections: 32, sockets: 10_000, bodyMiB: 256}
	o.owners, o.loads, o.rate, o.duration = []int{1, 100, 1000}, []string{report.ClosedLoop}, 200, 10*time.Second
	return o
}

func newHTTPCommand() *cobra.Command {
	o := defaultWebOptions()
	c := &cobra.Command{
		Use: "http", Short: "Measure HTTP requests to Pinwheel beside other servers with the same handler", Args: cobra.NoArgs,
		Long: "json: POST of 1 KB of JSON to workers/web.mjs, by Pinwheel and by each other system in turn, round by round.\n" +
			"file: GET of a file of 10 KB, beside Go's http.FileServer. websockets: memory for WebSockets that carry nothing.\n" +
			"calls: what a call costs that workers/calls.mjs makes: of a function, KV's get of 1 KB, a method of a service, fetch of a service.\n" +
			"kernels: the time that workers/kernels.mjs takes to compute each of eleven things.\n" +
			"pipe: a long body that workers/pipe.mjs hands on: new Response(request.body), on one connection.\n" +
			"Each answer is checked: a wrong one ends the measurement.\n\n" + describeSystems(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			cases, err := o.cases()
			if err != nil {
				return err
			}
			return measure(cmd.Context(), cmd.OutOrStdout(), o.options, cases)
		},
	}
	f := c.Flags()
	f.StringVar(&o.web, "case", o.web, strings.Join(report.Webs(), ", "))
	f.StringSliceVar(&o.systems, "system", nil, "`NAMES` of systems (default all)")
	f.StringSliceVar(&o.calls, "call", o.calls, "`KINDS` of calls; calls only")
	f.StringSliceVar(&o.kernels, "kernel", o.kernels, "`NAMES` of what is computed; kernels only")
	f.IntSliceVar(&o.owners, "owners", o.owners, "`NUMBERS` of owners; json only")
	f.StringSliceVar(&o.loads, "load", o.loads, "closed: each connection sends its next request when it has the answer to the last; open: a fixed rate, whatever the answers do")
	f.IntVar(&o.connections, "connections", o.connections, "connections that carry the requests")
	f.IntVar(&o.sockets, "sockets", o.sockets, "WebSockets; websockets only")
	f.IntVar(&o.bodyMiB, "body-mib", o.bodyMiB, "`MIB` of the body of a request; pipe only")
	f.IntVar(&o.rate, "rate", o.rate, "requests per second of an open loop")
	f.DurationVar(&o.duration, "duration", o.duration, "length of each measurement")
	f.IntVar(&o.processes, "processes", o.processes, "processes of Pinwheel, as PINWHEEL_PROCESSES; 1 is without a supervisor")
	f.IntVar(&o.rounds, "rounds", o.rounds, "rounds; every round measures all systems, one after the other")
	o.runFlags(f)
	return c
}

// Bounds of the command line.
const (
	maxConnections = 5000
	maxWebOwners   = 5000
	maxIdleSockets = 25_000 // a client has no more ports for one address
	maxBodyMiB     = 1024   // PINWHEEL_HTTP_MAX_BODY
)

func (o *webOptions) check() error {
	if err := checkBounds([]bound{
		{fmt.Sprintf("--case %q", o.web), slices.Contains(report.Webs(), o.web), "one of " + strings.Join(report.Webs(),
			", ")},
		{fmt.Sprintf("--connections %d", o.connections), o.connections >= 1 && o.connections <= maxConnections,
			fmt.Sprintf("1 to %d", maxConnections)},
		{fmt.Sprintf("--sockets %d", o.sockets), o.sockets >= 1 && o.sockets <= maxIdleSockets,
			fmt.Sprintf("1 to %d", maxIdleSockets)},
		{fmt.Sprintf("--body-mib %d", o.bodyMiB), o.bodyMiB >= 1 && o.bodyMiB <= maxBodyMiB,
			fmt.Sprintf("1 to %d", maxBodyMiB)},
		{fmt.Sprintf("--rate %d", o.rate), o.rate >= 1 && o.rate <= 1_000_000, "1 to 1000000"},
		{fmt.Sprintf("--duration %s", o.duration), o.duration >= 100*time.Millisecond && o.duration <= time.Hour,
			"100ms to 1h"},
		{fmt.Sprintf("--processes %d", o.processes), o.processes >= 1 && o.processes <= 64, "1 to 64"},
	}); err != nil {
		return err
	}
	for _, n := range o.owners {
		if n < 1 || n > maxWebOwners {
			return fmt.Errorf("--owners %d: it is 1 to %d", n, maxWebOwners)
		}
	}
	for _, load := range o.loads {
		if load != report.ClosedLoop && load != report.OpenLoop {
			return fmt.Errorf("--load %q: it is %s or %s", load, report.ClosedLoop, report.OpenLoop)
		}
	}
	return o.options.check()
}

// cases returns a case for each load, number of owners and system.
func (o *webOptions) cases() ([]report.Case, error) {
	names := o.systems
	if len(names) == 0 {
		for _, s := range systemsOf(o.web) {
			names = append(names, s.name)
		}
	}
	loads, owners := o.loads, o.owners
	switch o.web {
	case report.WebFile:
		owners = []int{1}
	case report.WebCalls:
		return o.oneByOne(names, "call", o.calls, report.Calls(), func(c *report.Case, call string) { c.Call = call })
	case report.WebKernels:
		return o.oneByOne(names, "kernel", o.kernels, report.Kernels(),
			func(c *report.Case, kernel string) { c.Kernel = kernel })
	case report.WebPipe:
		return o.oneByOne(names, "body-mib", []string{strconv.Itoa(o.bodyMiB)}, nil,
			func(c *report.Case, _ string) { c.Bytes = int64(o.bodyMiB) << 20 })
	case report.WebSockets:
		loads, owners = []string{report.IdleLoad}, []int{(o.sockets + socketsOfOwner - 1) / socketsOfOwner}
	}
	var list []report.Case
	for _, load := range loads {
		for _, n := range owners {
			for _, name := range names {
				if _, err := findSystem(o.web, name); err != nil {
					return nil, err
				}
				c := report.Case{System: name, Beside: true, Scenario: "http", Web: o.web, Load: load, Processes: o.processes,
					Owners: n, Connections: o.connections, Seconds: o.duration.Seconds()}
				if load == report.OpenLoop {
					c.Rate = o.rate
				}
				if load == report.IdleLoad {
					c.Connections = o.sockets
				}
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// oneByOne returns a case for each kind of request and system, with one request at a time.
func (o *webOptions) oneByOne(names []string, flag string, kinds, known []string,
	set func(c *report.Case, kind string)) ([]report.Case, error) {
	var list []report.Case
	for _, kind := range kinds {
		if known != nil && !slices.Contains(known, kind) {
			return nil, fmt.Errorf("--%s %q: it is one of %s", flag, kind, strings.Join(known, ", "))
		}
		for _, name := range names {
			if _, err := findSystem(o.web, name); err != nil {
				return nil, err
			}
			c := report.Case{System: name, Beside: true, Scenario: "http", Web: o.web, Load: report.ClosedLoop,
				Processes: o.processes, Owners: 1, Connections: 1, Seconds: o.duration.Seconds()}
			set(&c, kind)
			list = append(list, c)
		}
	}
	return list, nil
}
