package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

func testCase(t *testing.T, o *options, name, load, topology string) (*scenario, report.Case) {
	t.Helper()
	sc, err := findScenario(name)
	require.NoError(t, err)
	return sc, o.newCase(sc, load, topology, 1)
}

// TestWholeRun runs a saturation and an open loop through the whole program, including the reports.
func TestWholeRun(t *testing.T) {
	t.Parallel()
	path, err := pinwheelBinary()
	require.NoError(t, err)
	dir := t.TempDir()
	o := defaultOptions()
	o.pinwheel, o.stores = path, natstest.StoreDir(t)
	o.events, o.rate, o.duration, o.rounds, o.repeats, o.quiet = 500, 100, time.Second, 1, 0, 0
	o.topologies = []string{report.TopologyOne}
	o.JSON, o.HTML, o.Plots = filepath.Join(dir, "a.json"), filepath.Join(dir, "a.html"), filepath.Join(dir, "plots")
	cases, err := o.cases()
	require.NoError(t, err)
	require.Len(t, cases, 2)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, o, cases))
	require.Contains(t, out.String(), "echo saturation one")
	require.Contains(t, out.String(), "p99 ms")

	text, err := os.ReadFile(o.JSON)
	require.NoError(t, err)
	var written report.Report
	require.NoError(t, json.Unmarshal(text, &written))
	drained, open := written.Cases[0].Rounds[0], written.Cases[1].Rounds[0]
	require.Positive(t, drained.Metrics["events/s"])
	require.Positive(t, drained.Metrics["fleet peak MB"])
	require.Contains(t, open.Metrics, "p99 ms")
	require.NotContains(t, open.Metrics, "p99.9 ms", "100 events have none")
	require.LessOrEqual(t, open.Metrics["p50 ms"], open.Metrics["max ms"])
	require.NotEmpty(t, open.Curve)

	require.FileExists(t, filepath.Join(o.Plots, "latency.svg"))
	page := filepath.Join(dir, "again.html")
	require.Zero(t, run([]string{"report", o.JSON, "--html", page}))
	require.FileExists(t, page)
	require.Equal(t, 1, run([]string{"report", page}))

	var compared bytes.Buffer
	require.NoError(t, report.Compare(&compared, o.JSON, o.JSON))
	require.Contains(t, compared.String(), "noise")
	require.NotContains(t, compared.String(), "better")
}

// TestScenarios runs every part and mode against a real fleet, and checks every reply.
func TestScenarios(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	for _, tt := range []struct{ name, load, topology string }{
		{"mixed", report.Saturation, report.TopologyEmbedded},
		{"streamed", report.OpenLoop, report.TopologyEmbedded},
		{"cold", report.Saturation, report.TopologyOne},
		{"oneshot", report.OpenLoop, report.TopologyEmbedded},
		{"persistent", report.Saturation, report.TopologyEmbedded},
		{"shared", report.Saturation, report.TopologyEmbedded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.o.events, r.o.rate, r.o.duration = 100, 10, 500*time.Millisecond
			_, c := testCase(t, r.o, tt.name, tt.load, tt.topology)
			round, err := r.run(t.Context(), c)
			require.NoError(t, err)
			require.NotEmpty(t, round.Metrics)
		})
	}
}

// TestSources measures each way to a worker, and checks that nothing is lost there.
func TestSources(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	r.o.events = 200
	for _, c := range r.o.sourceCases() {
		t.Run(c.System, func(t *testing.T) {
			round, err := r.run(t.Context(), c)
			require.NoError(t, err)
			require.Positive(t, round.Metrics["events/s"])
			require.Contains(t, round.Metrics, "fleet µs/event")
			require.Contains(t, round.Metrics, "nats µs/event")
		})
	}
}

// TestRefusesEventsOfOtherMessages has a worker throw, because an event is not of the message that it says.
func TestRefusesEventsOfOtherMessages(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	r.o.events = 20
	c := r.o.sourceCases()[0]
	_, err := r.fromSourceOf(t.Context(), c, func(b []byte, id int) []byte { return order(b, id+id/19) }) // the last one
	require.ErrorContains(t, err, "1 events became dead letters")
}

func TestNoisyNeighbour(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	r.o.rate, r.o.duration = 50, 500*time.Millisecond
	sc, c := testCase(t, r.o, "noisy", report.OpenLoop, report.TopologyOne)
	sc.noise, c.Owners = 400, 5
	round, err := r.runOf(t.Context(), sc, c)
	require.NoError(t, err)
	require.Positive(t, round.Metrics["p99 alone ms"])
	require.Positive(t, round.Metrics["p99 beside/alone"])
}

func TestPurge(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	r.o.rate, r.o.duration = 50, 500*time.Millisecond
	sc, c := testCase(t, r.o, "purge", report.OpenLoop, report.TopologyOne)
	sc.noise, c.Owners = 400, 5
	round, err := r.runOf(t.Context(), sc, c)
	require.NoError(t, err)
	require.Positive(t, round.Metrics["p99 beside/alone"])
	require.Positive(t, round.Metrics["seconds"])
}

// TestRefusesWhatTheFleetSaysWrong has a real fleet give answers that the scenario does not expect.
func TestRefusesWhatTheFleetSaysWrong(t *testing.T) {
	t.Parallel()
	r := openTest(t, true)
	r.o.events = 20
	sc, c := testCase(t, r.o, "echo", report.Saturation, report.TopologyOne)
	sc.parts[0].reply = func(b []byte, id int) []byte { return receipt(b, id+id/19) } // wrong for the last
	_, err := r.runOf(t.Context(), sc, c)
	require.ErrorContains(t, err, `event 19: the reply is "{\"ok\":true,\"id\":19,`)

	r.o.rate, r.o.duration = 20, 500*time.Millisecond
	sc, c = testCase(t, r.o, "echo", report.OpenLoop, report.TopologyOne)
	sc.parts[0].body = func(b []byte, id int) []byte { return append(b, "no JSON"...) } // the handler throws
	_, err = r.runOf(t.Context(), sc, c)
	require.Error(t, err)
	require.Regexp(t, `event \d+ failed: exception: SyntaxError`, err.Error(), "answers come in any order")
}

// TestRefusesWhatPeersDoWrong has a consumer lose an event, answer it wrongly, answer it twice, not ack it, or crash on
// it.
func TestRefusesWhatPeersDoWrong(t *testing.T) {
	t.Parallel()
	r := openTest(t, false)
	r.o.events, r.o.patience = 50, time.Second
	for fault, want := range map[string]string{
		"none": "", "lost": "lost: 1 of 50 events have no reply, the first are 3", "wrong": "event 3: the reply is",
		"double":  "event 3: two replies of attempt 1",
		"unacked": "1 events are answered and not acked", "dies": "liar-dies ended (exit status 3)",
	} {
		t.Run(fault, func(t *testing.T) {
			r.peers = append(r.peers, peer{name: "liar-" + fault, args: []string{"liar", fault}})
			sc, c := testCase(t, r.o, "echo", report.Saturation, report.TopologyOne)
			c.System = "liar-" + fault
			_, err := r.runOf(t.Context(), sc, c)
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
