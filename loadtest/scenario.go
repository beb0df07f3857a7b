package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// openLength is the length of an open loop.
const openLength = 10 * time.Second

// scenario describes the load: its events, and the number of owners.
type scenario struct {
	name, about string
	parts       []part
	owners      int
	loads       []string
	events      int // number of events of a saturation run, unless the command line sets it
	rate        int // events per second of an open loop
	// length of an open loop, or of noisy's part without a backlog, unless the command line sets it; 0: openLength
	length time.Duration
	warm   bool
	stream bool     // request and reply bodies are sent in chunks
	noise  int      // number of events of another owner's backlog, in addition
	purged bool     // that owner is paused, and its backlog is purged
	policy []string // flags of pinwheel owners set, for each owner

	// The following fields are only for curves.
	deployed  int      // workers, with those that have no events
	pending   int      // workers, including those without events
	processes int      // 0: one
	env       []string // environment of the fleet; of purge too
}

// part is a worker with its events and replies in a scenario.
type part struct {
	worker string // a file in workers/
	mode   workers.Mode
	kind   events.Kind
	weight int // share of the events, relative to the sum of all weights
	copy   int // 0, or the number of one of several workers with the same code
	body   func(b []byte, id int) []byte
	reply  func(b []byte, id int) []byte // the exact expected reply
}

// name returns the name of the worker. A file that is used in two modes is two workers.
func (p part) name() string {
	if p.copy > 0 {
		return fmt.Sprintf("%s-%d", p.deployed(), p.copy)
	}
	return p.deployed()
}

// deployed is the name of the worker that all copies are copies of.
func (p part) deployed() string {
	base, _, _ := strings.Cut(p.worker, ".")
	if p.mode == "" {
		return base
	}
	return base + "-" + string(p.mode)
}

// copies returns n workers with the code of p.
func copies(p part, n int) []part {
	list := make([]part, n)
	for i := range list {
		list[i] = p
		list[i].copy = i + 1
	}
	return list
}

func both() []string { return []string{report.Saturation, report.OpenLoop} }

func echo() part {
	return part{worker: "order.mjs", kind: events.Fetch, weight: 1, body: order, reply: receipt}
}

func echoIn(m workers.Mode) []part {
	p := echo()
	p.mode = m
	return []part{p}
}

func task() part {
	return part{worker: "order.mjs", kind: events.Task, weight: 1, body: order, reply: taskReceipt}
}

func batchOf(worker string) part {
	return part{worker: worker, kind: events.Task, weight: 1, body: order, reply: batchReply}
}

// receiptBy is echo whose handler also calls a binding.
func receiptBy(worker string) part {
	return part{worker: worker, kind: events.Fetch, weight: 1, body: order, reply: receipt}
}

func wait() part {
	return part{worker: "wait.mjs", kind: events.Fetch, weight: 1, body: order, reply: receipt}
}

func inout() part {
	return part{worker: "io.mjs", kind: events.Fetch, weight: 1, body: order, reply: ioReply}
}

func spin() part {
	return part{worker: "spin.mjs", kind: events.Fetch, weight: 1, body: spinBody, reply: spinReplies()}
}

func mirror(body func([]byte, int) []byte) part {
	return part{worker: "mirror.mjs", kind: events.Fetch, weight: 1, body: body, reply: body}
}

func scenarios() []scenario {
	weigh := func(weight int, p part) part { p.weight = weight; return p }
	return []scenario{
		{name: "echo", about: "1 KB of JSON parsed, answered with JSON, in a warm context", parts: []part{echo()}, owners: 1, loads: both(),
			events: 60_000, rate: 200, warm: true},
		{name: "task", about: "the same as a task", parts: []part{task()}, owners: 1, loads: both(), events: 60_000,
			rate: 200, warm: true},
		{name: "wait", about: "echo, and 50 ms of waitUntil after the reply", parts: []part{wait()}, owners: 1, loads: both(),
			events: 10_000, rate: 200, warm: true},
		{name: "io", about: "a subrequest that takes 50 ms", parts: []part{inout()}, owners: 1, loads: both(), events: 8_000,
			rate: 200, warm: true},
		{name: "batch", about: "a subrequest that takes 50 ms for each batch of 100, by a queue handler", parts: []part{batchOf("batch-100.mjs")}, owners: 1,
			loads: both(), events: 40_000, rate: 200, warm: true},
		{name: "batch-1", about: "the same queue handler, one event at a time", parts: []part{batchOf("batch-1.mjs")}, owners: 1,
			loads: both(), events: 8_000, rate: 200, warm: true},
		{name: "kv", about: "echo, and a get of 1 KB by a KV binding", parts: []part{receiptBy("kv.mjs")}, owners: 1,
			loads: both(), events: 30_000, rate: 200, warm: true, policy: []string{"--binding-calls", "1000000"}},
		{name: "method", about: "echo, and a service call of a method of the same worker", parts: []part{receiptBy("method.mjs")}, owners: 1,
			loads: both(), events: 30_000, rate: 200, warm: true},
		{name: "service", about: "echo, and a service call of the same worker's fetch, with a body", parts: []part{receiptBy("service.mjs")}, owners: 1,
			loads: both(), events: 30_000, rate: 200, warm: true},
		{name: "cpu", about: "about 5 ms of computation", parts: []part{spin()}, owners: 1, loads: both(), events: 1_500,
			rate: 50, warm: true},
		{name: "cold", about: "each event is the first of a worker of its own", parts: []part{echo()}, owners: 500, loads: both(),
			events: 500, rate: 50},
		{name: "owners-100", about: "echo of 100 owners, an isolate each", parts: []part{echo()}, owners: 100, loads: both(),
			events: 60_000, rate: 200, warm: true},
		{name: "owners-400", about: "echo of 400 owners in turn, for which there is just room", parts: []part{echo()}, owners: 400,
			loads: both(), events: 60_000, rate: 200, warm: true},
		{name: "owners-10000", about: "echo of 10 000 owners in turn, with room for 500 isolates", parts: []part{echo()}, owners: 10_000,
			loads: both(), events: 5_000, rate: 100, warm: true},
		{name: "group-10000", about: "owners-10000 in one group: they share isolates", parts: []part{echo()}, owners: 10_000,
			loads: both(), events: 5_000, rate: 100, warm: true, policy: []string{"--group", "all"}},
		{name: "noisy", about: "50 quiet owners at 5 events/s each, alone, and beside one with 100 000 events of 5 ms until those are over", parts: []part{echo()}, owners: 50,
			loads: []string{report.OpenLoop}, rate: 250, length: 30 * time.Second, warm: true, noise: 100_000},
		{name: "purge", about: "50 quiet owners at 5 events/s each, alone, and while 100 000 events of one that is paused are purged", parts: []part{echo()}, owners: 50,
			loads: []string{report.OpenLoop}, rate: 250, length: 30 * time.Second, warm: true, noise: 100_000, purged: true,
			env: []string{controlToken}},
		{name: "oneshot", about: "echo, each event in a new isolate", parts: echoIn(workers.Oneshot), owners: 1,
			loads:  both(),
			events: 3_000, rate: 50, warm: true},
		{name: "persistent", about: "echo, all events in one context", parts: echoIn(workers.Persistent), owners: 1,
			loads: both(), events: 60_000, rate: 200, warm: true},
		{name: "shared", about: "echo, in isolates that any thread may take", parts: echoIn(workers.Shared), owners: 1,
			loads: both(), events: 60_000, rate: 200, warm: true},
		{name: "shared-100", about: "the same of 100 owners; owners-100 is pinned", parts: echoIn(workers.Shared), owners: 100,
			loads: both(), events: 60_000, rate: 200, warm: true},
		{name: "body-1k", about: "a body of 1 KB comes back", parts: []part{mirror(kilobyte)}, owners: 1, loads: both(),
			events: 60_000, rate: 200, warm: true},
		{name: "body-64k", about: "a body of 64 KB comes back", parts: []part{mirror(sixtyFour)}, owners: 1, loads: both(),
			events: 8_000, rate: 100, warm: true},
		{name: "streamed", about: "2 MB go in parts and come back in chunks", parts: []part{mirrorStream()}, owners: 1,
			loads: []string{report.OpenLoop}, rate: 10, warm: true, stream: true},
		{name: "mixed", about: "of 20 events 10 echo, 5 task, 2 wait, 1 io, 1 cpu, 1 of 64 KB; 20 owners", parts: []part{
			weigh(10, echo()), weigh(5, task()), weigh(2, wait()), weigh(1, inout()), weigh(1, spin()),
			weigh(1, mirror(sixtyFour)),
		}, owners: 20, loads: both(), events: 10_000, rate: 200, warm: true},
	}
}

func mirrorStream() part {
	return part{worker: "stream.mjs", kind: events.Fetch, weight: 1, body: twoMegabytes, reply: twoMegabytes}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func findScenario(name string) (*scenario, error) {
	list := scenarios()
	i := slices.IndexFunc(list, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--scenario %q: it is all, or of %s", name, strings.Join(scenarioNames(), ", "))
	}
	return &list[i], nil
}

func printScenarios(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tloads\towners\tevents\trate/s\t")
	for _, s := range scenarios() {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", s.name, strings.Join(s.loads, ","), s.owners, s.events, s.rate, s.about)
	}
	return w.Flush()
}

// partOf returns the part that event id belongs to. In each run of as many events as the sum of all weights, each part
// occurs as often as its weight says, and the parts are mixed.
func (s *scenario) partOf(id int) *part {
	sum := 0
	for i := range s.parts {
		sum += s.parts[i].weight
	}
	// 7 has no common divisor with a sum of weights of 20, so consecutive events belong to different parts.
	at := id * 7 % sum
	for i := range s.parts {
		if at -= s.parts[i].weight; at < 0 {
			return &s.parts[i]
		}
	}
	return nil // not reached: at < sum
}

// ownerOf returns the owner of event id. Owners are shifted against parts, so that each owner has events of all parts.
func (s *scenario) ownerOf(id, owners int) int {
	if len(s.parts) > 1 {
		return (id + id/owners) % owners
	}
	return id % owners
}

func ownerName(i int) string { return fmt.Sprintf("owner-%d", i) }
