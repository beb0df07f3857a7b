package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// TestCurves runs the special features of curves through the whole program: workers without events, several processes
// limited by their slots, a constant backlog, lines of one plot, and a page's section.
func TestCurves(t *testing.T) {
	t.Parallel()
	path, err := pinwheelBinary()
	require.NoError(t, err)
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte("<!-- curves: x -->\n<!-- end -->\nWhat bends them.\n"), 0o600))
	o := defaultOptions()
	o.pinwheel, o.stores = path, natstest.StoreDir(t)
	o.rounds, o.repeats, o.quiet, o.Doc, o.patience = 1, 0, 0, page+"#curves", 30*time.Second
	require.NoError(t, o.check())
	all, err := o.curveCases([]string{"all"}, true)
	require.NoError(t, err)
	var cases []report.Case
	for _, c := range all {
		switch c.Name() {
		case "workers=100", "active=8", "threads=2 shared", "processes=2", "backlog=10", "body=0":
			cases = append(cases, c)
		}
	}
	require.Len(t, cases, 6)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, o, cases))
	require.Regexp(t, `(?m)^ +2 shared +[1-9]`, out.String())
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "### Workers deployed\n\nEcho of one worker beside so many that have no events.\n")
	require.Regexp(t, `(?m)^\| 8 \| [0-9.]+ \| 1.00 \| [0-9.]+ \| (9[0-9]|100)\.[0-9]`, string(text), "eight workers of one owner are warm")
	require.Contains(t, string(text), "![Processes](img/curves/processes.svg)")
	require.Contains(t, string(text), "What bends them.")
	require.FileExists(t, filepath.Join(dir, "img", "curves", "backlog.svg"))
}

// TestBacklogIsJudgedToItsEnd has a wrong reply among the events after the counted ones.
func TestBacklogIsJudgedToItsEnd(t *testing.T) {
	t.Parallel()
	r := openTest(t, false)
	r.peers = append(r.peers, peer{name: "liar-none", args: []string{"liar", "none"}},
		peer{name: "liar-wrong", args: []string{"liar", "wrong"}})
	c := report.Case{System: "liar-none", Load: report.Saturation, Topology: report.TopologyOne, Processes: 1, Owners: 1,
		Events: 20, Pending: 30}
	sc := overBacklog(30, "")
	round, err := r.runOf(t.Context(), &sc, c)
	require.NoError(t, err)
	require.Positive(t, round.Metrics["events/s"])
	right := sc.parts[0].reply
	sc.parts[0].reply = func(b []byte, id int) []byte { return right(b, id+id/49) }
	_, err = r.runOf(t.Context(), &sc, c)
	require.ErrorContains(t, err, "event 49: the reply is", "20 events count, 30 more are drained")
}

func TestCurveCases(t *testing.T) {
	o := defaultOptions()
	list, err := o.curveCases([]string{"all"}, false)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, c := range list {
		require.False(t, names[c.Name()], c.Name())
		names[c.Name()] = true
		sc, err := scenarioOf(c)
		require.NoError(t, err)
		require.NotZero(t, c.Events+c.Rate, c.Name())
		require.Equal(t, sc.pending, c.Pending, c.Name())
		body := sc.parts[0].body(nil, 3)
		require.LessOrEqual(t, len(body), biggestBody, c.Name())
		if c.Curve == "body" {
			require.Len(t, body, c.At)
		}
	}
	for _, want := range []string{"owners=10000", "workers=10000", "active=500", "threads=2 shared", "body=1000000",
		"processes=4", "backlog=1000000"} {
		require.Contains(t, names, want)
	}
	quick, err := o.curveCases([]string{"backlog"}, true)
	require.NoError(t, err)
	require.Len(t, quick, 2)
	require.Equal(t, quickEvents, quick[0].Events)
	_, err = o.curveCases([]string{"x"}, false)
	require.ErrorContains(t, err, `--curve "x": it is all, or of owners, workers`)
	require.Equal(t, []int{1, 2, 4}, threadCounts(2))
	require.Equal(t, []int{1, 2}, threadCounts(1))
	require.Equal(t, []int{1, 2, 32, 64}, threadCounts(96))
	require.Equal(t, []string{"0", "1 KB", "64 KB", "1 MB"}, []string{size(0), size(1 << 10), size(64 << 10),
		size(biggestBody)})
	require.Equal(t, []string{"1", "1 000", "10 000", "1 000 000"}, []string{report.Grouped(1), report.Grouped(1000),
		report.Grouped(10_000), report.Grouped(1_000_000)})
}
