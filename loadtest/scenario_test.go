package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

func TestScenariosAreWhole(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			require.NotEmpty(t, s.about)
			require.Positive(t, s.rate)
			require.Positive(t, s.owners)
			counts := map[string]int{}
			sum := 0
			for _, p := range s.parts {
				sum += p.weight
				_, err := workerFiles.ReadFile("workers/" + p.worker)
				require.NoError(t, err)
				require.NotEqual(t, p.body(nil, 1), p.body(nil, 2), "events can be told apart")
				if !strings.HasPrefix(p.worker, "batch-") { // the platform replies to an event of a batch
					require.NotEqual(t, p.reply(nil, 1), p.reply(nil, 2), "replies can be told apart")
				}
				require.Equal(t, "x", string(p.reply([]byte("x"), 1)[:1]), "it appends")
			}
			owners := map[[2]any]bool{}
			for id := range sum * s.owners {
				p := s.partOf(id)
				counts[p.worker+string(rune('0'+p.kind))]++
				owners[[2]any{s.ownerOf(id, s.owners), p.name() + string(rune('0'+p.kind))}] = true
			}
			for _, p := range s.parts {
				require.Equal(t, 0, counts[p.worker+string(rune('0'+p.kind))]%(p.weight*s.owners), "parts have their weight")
			}
		})
	}
}

func TestMixedGivesEveryOwnerEveryPart(t *testing.T) {
	s, err := findScenario("mixed")
	require.NoError(t, err)
	seen := map[int]map[*part]bool{}
	for id := range 20 * 20 {
		owner := s.ownerOf(id, s.owners)
		if seen[owner] == nil {
			seen[owner] = map[*part]bool{}
		}
		seen[owner][s.partOf(id)] = true
	}
	require.Len(t, seen, s.owners)
	for owner, parts := range seen {
		require.Len(t, parts, len(s.parts), "owner %d", owner)
	}
}

func TestOrderIsAKilobyte(t *testing.T) {
	require.InDelta(t, 1024, len(order(nil, 12345)), 64)
	require.Len(t, kilobyte(nil, 7), 1<<10)
	require.Len(t, sixtyFour(nil, 7), 64<<10)
}

func TestCases(t *testing.T) {
	o := defaultOptions()
	o.scenarios, o.topologies, o.processes = []string{"echo", "noisy", "cold"}, []string{report.TopologyEmbedded,
		report.TopologyOne}, []int{1, 4}
	list, err := o.cases()
	require.NoError(t, err)
	require.Len(t, list, (2+1+2)*4)
	names := map[string]bool{}
	for _, c := range list {
		require.False(t, names[c.Name()], c.Name())
		names[c.Name()] = true
		if c.Scenario == "cold" {
			require.Equal(t, 500, c.Owners, "a worker for each event")
		}
	}
	for want, change := range map[string]func(*options){
		`--scenario "x": it is all, or of echo`: func(o *options) { o.scenarios = []string{"x"} },
		`--load saturation: scenario streamed has only`: func(o *options) {
			o.scenarios, o.loads = []string{"streamed"},
				[]string{report.Saturation}
		},
		`--load "full": it is`:              func(o *options) { o.loads = []string{"full"} },
		`--topology "two": it is one of`:    func(o *options) { o.topologies = []string{"two"} },
		`--processes 0: it is 1 to 64`:      func(o *options) { o.processes = []int{0} },
		`--rounds 0: it is 1 to 1000`:       func(o *options) { o.rounds = 0 },
		`--env "X": write it as NAME=VALUE`: func(o *options) { o.env = []string{"X"} },
	} {
		o := defaultOptions()
		change(o)
		_, err := o.cases()
		require.ErrorContains(t, err, want)
	}
	o.scenarios = []string{"all"}
	_, err = o.cases()
	require.NoError(t, err)
}

func TestMissingPeersAreTold(t *testing.T) {
	r := &runner{o: defaultOptions(), peers: peers(), peerDir: t.TempDir()}
	t.Setenv("PATH", "")
	cases, err := r.o.peerCases([]string{"floor", "node-ivm", "bun-plain"})
	require.NoError(t, err)
	err = r.missing(t.Context(), cases)
	for _, want := range []string{"node-ivm needs node", "node-ivm needs the package isolated-vm",
		"bun-plain needs the package bun", "npm install --prefix loadtest/peers", "--peer"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "floor needs")
	_, err = r.o.peerCases([]string{"rhino"})
	require.ErrorContains(t, err, `--peer "rhino": it is one of`)
	cases, err = r.o.peerCases([]string{"floor"})
	require.NoError(t, err)
	require.NoError(t, r.missing(t.Context(), cases), "nothing of npm is needed")
}
