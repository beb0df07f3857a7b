package e2e

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// twoHouses returns two processes of a fleet that know each other.
func twoHouses(t *testing.T) (first, second *testFleet) {
	t.Helper()
	first = openFleet(t, withToken)
	second = openFleet(t, withToken, func(c *config.Config) { c.NatsURL = first.fleet.URL() })
	for _, h := range []*testFleet{first, second} {
		require.Eventually(t, func() bool { return h.processes() == 2 }, patience, patience/1000)
	}
	return first, second
}

func TestJobsOfAllProcesses(t *testing.T) {
	t.Parallel()
	first, _ := twoHouses(t)
	first.lay(2)
	c := control.NewClient(first.nc, "pinwheel", controlToken)
	processes := ask[micro.Info](first, "$SRV.INFO.pinwheel", 2)
	var want []string
	require.Eventually(t, func() bool { // either process may take a request
		j, err := control.Ask(t.Context(), c, control.DeadPurge, control.Selection{All: true, DryRun: true})
		if err == nil {
			want = append(want, j.Job)
		}
		begun := strings.Join(want, " ")
		return strings.Contains(begun, processes[0].ID) && strings.Contains(begun, processes[1].ID)
	}, patience, patience/1000)
	jobs, missing, err := c.AllJobs(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	var got []string
	for _, j := range jobs {
		got = append(got, j.Job)
	}
	require.Equal(t, want, got)

	list := first.ask("dead.jobs", "")
	require.Equal(t, inventory.Node(), list["node"])
	require.Len(t, list["processes"], 2)
	_, _, err = control.NewClient(first.nc, "pinwheel", "wrong").AllJobs(t.Context())
	require.ErrorContains(t, err, "has not the fleet's token")
	_, _, err = control.NewClient(first.nc, "other", controlToken).AllJobs(t.Context())
	require.ErrorIs(t, err, nats.ErrNoResponders)
}

func TestPoolsOfAllProcesses(t *testing.T) {
	t.Parallel()
	first, _ := twoHouses(t)
	first.deploy("acme", "w", `export default { fetch: () => new Response("") }`)
	first.call("acme/w")
	first.settled()
	pools, missing, err := control.NewClient(first.nc, "pinwheel", "").Pools(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Len(t, pools, 2)
	var ids []string
	ran := uint64(0)
	for _, p := range pools {
		ids = append(ids, p.ID)
		require.Equal(t, inventory.Node(), p.Node)
		require.Positive(t, p.Total)
		require.NotEmpty(t, p.Threads)
		ran += p.ColdStarts + p.WarmHits
	}
	require.NotEqual(t, ids[0], ids[1])
	require.EqualValues(t, 1, ran)

	answer := first.ask("pool", "what earlier clients sent")
	for _, name := range []string{"id", "node", "processes", "total", "hit_rate", "threads", "dispatch", "consumer"} {
		require.Contains(t, answer, name)
	}

	// A Pool has all fields of the isolates' figures, by the same names.
	text, err := json.Marshal(first.fleet.Stats().Stats)
	require.NoError(t, err)
	var p control.Pool
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&p))
	again, err := json.Marshal(p)
	require.NoError(t, err)
	var want, have map[string]any
	require.NoError(t, json.Unmarshal(text, &want))
	require.NoError(t, json.Unmarshal(again, &have))
	for _, own := range []string{"id", "node", "processes", "cellAccount"} {
		require.Contains(t, have, own)
		delete(have, own)
	}
	require.Equal(t, want, have)
}

// A reset ends the contexts of a worker in all processes, by an operator or its owner, and is recorded once.
func TestResetReachesAllProcesses(t *testing.T) {
	t.Parallel()
	first, second := twoHouses(t)
	first.deploy("acme", "w", `export default { fetch: () => new Response("") }`)
	contexts := func(h *testFleet) int {
		for _, w := range h.fleet.Stats().Workers {
			if w.Worker == "acme/w" {
				return w.Contexts
			}
		}
		return 0
	}
	none := control.NewClient(first.nc, "pinwheel", "")
	_, err := control.Ask(t.Context(), none, control.WorkersReset, control.WorkerName{Worker: "acme/w"})
	require.ErrorContains(t, err, "workers.reset needs the header Authorization")
	for _, c := range []*control.Client{control.NewClient(first.nc, "pinwheel", controlToken),
		control.NewOwnerClient(first.nc, "pinwheel", "acme")} {
		require.Eventually(t, func() bool {
			first.call("acme/w")
			return contexts(first) > 0 && contexts(second) > 0
		}, patience, patience/10000)
		done, err := control.Ask(t.Context(), c, control.WorkersReset, control.WorkerName{Worker: "acme/w"})
		require.NoError(t, err)
		require.Equal(t, control.ResetWorker{Worker: "acme/w", Processes: 2}, done)
		require.Eventually(t, func() bool { return contexts(first)+contexts(second) == 0 }, patience, patience/10000)
		_, err = control.Ask(t.Context(), c, control.WorkersReset, control.WorkerName{Worker: "acme/none"})
		require.ErrorContains(t, err, "acme/none")
	}
	_, err = control.Ask(t.Context(), control.NewOwnerClient(first.nc, "pinwheel", "beta"), control.WorkersReset,
		control.WorkerName{Worker: "acme/w"})
	require.Error(t, err)
	list, err := control.Ask(t.Context(), control.NewClient(first.nc, "pinwheel", controlToken), control.AuditRecords,
		control.ListAudit{})
	require.NoError(t, err)
	var actions []string
	for _, one := range list.Changes {
		if one.Action == "workers.reset" {
			actions = append(actions, one.Source+" "+one.Owner)
		}
	}
	require.Equal(t, []string{"control acme", "door acme"}, actions)
}
