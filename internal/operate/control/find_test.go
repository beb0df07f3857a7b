package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// running is what runs of a worker.
func running(target string) *workers.Installation {
	owner, name, _ := strings.Cut(target, "/")
	in := workers.Only(&workers.Worker{Owner: owner, Name: name, Version: "1-a", Number: 1})
	return &in
}

// The pages of a search have together what matches, in the order of workers.list, whatever their size and the order in
// which the process has the workers.
func TestPagesFindWhatMatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab-]{1,2}/[aB0]{1,3}`), 0, 60, rapid.ID).Draw(t, "workers")
		all, policies := []*workers.Installation{}, map[string]*workers.Policy{"none": {Weight: 2}}
		for _, n := range names {
			all = append(all, running(n))
		}
		match := rapid.SampledFrom([]string{"", "a", "b", "A/B", "/", "none", "x"}).Draw(t, "match")
		limit, room := rapid.IntRange(1, 20).Draw(t, "limit"), rapid.SampledFrom([]int{1, 400, 1 << 20}).Draw(t, "room")

		want, got := []string{}, []string{}
		for _, n := range slices.Sorted(slices.Values(names)) {
			if strings.Contains(strings.ToLower(n), strings.ToLower(match)) {
				want = append(want, n)
			}
		}
		for r := (FindWorkers{Match: match}); ; {
			page, err := r.find(all, limit, room)
			require.NoError(t, err)
			require.Equal(t, len(want), page.Total)
			require.LessOrEqual(t, len(page.Workers), limit)
			for _, w := range page.Workers {
				got = append(got, w.Owner+"/"+w.Name)
			}
			if r.After = page.Next; page.Next == "" {
				break
			}
		}
		require.Equal(t, want, got)

		owners := map[string]int{"none": 0}
		for _, n := range names {
			o, _, _ := strings.Cut(n, "/")
			owners[o]++
		}
		maps.DeleteFunc(owners, func(o string, _ int) bool { return !strings.Contains(o, strings.ToLower(match)) })
		var order []string
		found := map[string]int{}
		for r := (FindOwners{Match: match}); ; {
			page, err := r.find(all, policies, limit, room)
			require.NoError(t, err)
			require.Equal(t, len(owners), page.Total)
			for _, o := range page.Owners {
				order = append(order, o.Owner)
				found[o.Owner] = o.Workers
				require.Equal(t, policies[o.Owner], o.Policy)
			}
			if r.After = page.Next; page.Next == "" {
				break
			}
		}
		require.Equal(t, owners, found)
		require.True(t, slices.IsSorted(order))
	})
}

// A summary is of the active version and of the deployment.
func TestWorkersAreSummarized(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	old := &workers.Worker{
		Owner: "acme", Name: "w", Version: "1-a", Number: 1, Handlers: []events.Kind{events.Task}, Queue: true,
		DeployedAt: at, Tag: "v1", Message: "m",
		Spec: workers.Spec{Schedules: []workers.Schedule{{}, {}}, HTTP: &workers.HTTP{Routes: []string{"a.example/*"}}},
	}
	in := workers.Only(old)
	in.Versions = append(in.Versions, &workers.Worker{Owner: "acme", Name: "w", Version: "2-b", Number: 2})
	in.Deployment.Split = []workers.Share{{Version: "1-a", Percent: 90}, {Version: "2-b", Percent: 10}}
	in.Deployment.Rollout = &workers.Rollout{State: workers.RolloutRunning}
	require.Equal(t, WorkerSummary{
		Owner: "acme", Name: "w", Version: "1-a", Number: 1, Versions: 2, Handlers: []events.Kind{events.Task}, Queue: true,
		Mode: "pinned", DeployedAt: at, Tag: "v1", Message: "m",
		Split: in.Deployment.Split, RollingOut: true, Routes: []string{"a.example/*"}, Schedules: 2,
	}, summarize(&in))
	text, err := encodeJSON(summarize(&in))
	require.NoError(t, err)
	require.JSONEq(t,
		`{"owner":"acme","name":"w","version":"1-a","number":1,"versions":2,"handlers":["task"],"queue":true,"mode":"pinned","deployedAt":"2026-01-02T03:04:05Z","tag":"v1",
		"message":"m","split":[{"version":"1-a","percent":90},{"version":"2-b","percent":10}],"rollingOut":true,"routes":["a.example/*"],"schedules":2}`, string(text))
	in.Deployment.Split = nil
	text, err = encodeJSON(summarize(&in))
	require.NoError(t, err)
	require.JSONEq(t, `{"owner":"acme","name":"w","versions":2,"handlers":[],"rollingOut":true}`, string(text))
}

func BenchmarkFind(b *testing.B) {
	var all []*workers.Installation
	for i := range 10_000 {
		all = append(all, running(fmt.Sprintf("owner-%d/worker-%d", i%500, i)))
	}
	for name, r := range map[string]FindWorkers{"first page": {}, "middle": {After: "owner-3/"}, "match": {Match: "R-77"},
		"of an owner": {Owner: "owner-7"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := r.find(all, 100, 1<<20)
				require.NoError(b, err)
			}
		})
	}
	b.Run("owners", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := FindOwners{}.find(all, nil, 100, 1<<20)
			require.NoError(b, err)
		}
	})
}

// A part of a list has an order, leaves out its beginning, and may have only some names.
func TestPartsOfLists(t *testing.T) {
	t.Parallel()
	all := []*workers.Installation{running("b/one"), running("a/old"), running("a/new")}
	for i, in := range all {
		in.Versions[0].DeployedAt = time.Unix(int64(1000*(i%3)), 0)
	}
	find := func(r FindWorkers, limit int) (names []string, next string) {
		f, err := r.find(all, limit, 1<<20)
		require.NoError(t, err)
		for _, w := range f.Workers {
			names = append(names, w.Owner+"/"+w.Name)
		}
		return names, f.Next
	}
	names, _ := find(FindWorkers{Part: Part{Sort: byDeployed}}, 10)
	require.Equal(t, []string{"a/new", "a/old", "b/one"}, names)
	names, next := find(FindWorkers{Part: Part{Sort: byDeployed, Skip: 1}}, 1)
	require.Equal(t, []string{"a/old"}, names)
	names, next = find(FindWorkers{After: next, Part: Part{Sort: byDeployed}}, 1)
	require.Equal(t, []string{"b/one"}, names)
	require.Empty(t, next)
	names, _ = find(FindWorkers{Part: Part{Names: []string{"b/one", "a/new", "none/there"}}}, 10)
	require.Equal(t, []string{"a/new", "b/one"}, names)
	names, _ = find(FindWorkers{Part: Part{Skip: 7}}, 10)
	require.Empty(t, names)

	owners, err := FindOwners{Part: Part{Sort: byWorkers, Skip: 1}}.find(all, nil, 10, 1<<20)
	require.NoError(t, err)
	require.Equal(t, "b", owners.Owners[0].Owner, "a has more workers, and is left out")
	require.Equal(t, 2, owners.Total)
	for want, p := range map[string]Part{"it is name or deployed": {Sort: "colour"}, "it is 0 to 1000000": {Skip: -1},
		"it has at most 1000": {Names: make([]string, 1001)}} {
		require.ErrorContains(t, p.check(byDeployed), want)
	}
	require.NoError(t, Part{Sort: "name", Skip: 5}.check(byDeployed))
}
