package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// The Go client and the endpoints share their types. The endpoints understand the client's requests, with the token and
// without.
func TestControlClient(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken, func(c *config.Config) { c.AllowPrivateAddresses = config.List{"10.0.0.0/8"} })
	c := control.NewClient(h.nc, "pinwheel", controlToken)
	h.deploy("acme", "w", `export default { task: (e) => e.payload, scheduled() {} }`, `{"schedules": [{"name": "night", "cron": "0 3 * * *"}]}`)
	h.lay(3)

	settings, err := control.Ask(t.Context(), c, control.GetSettings, control.None{})
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.0/8"}, settings.AllowPrivateAddresses)
	workers, err := control.Ask(t.Context(), c, control.WorkersList, control.ListWorkers{Owner: "acme"})
	require.NoError(t, err)
	require.Equal(t, "w", workers.Workers[0].Name)
	versions, err := control.Ask(t.Context(), c, control.VersionsList, control.WorkerName{Worker: "acme/w"})
	require.NoError(t, err)
	require.Equal(t, workers.Workers[0].Version, versions.Active)

	set, err := control.Ask(t.Context(), c, control.OwnersSet,
		control.SetOwner{OwnerName: control.OwnerName{Owner: "acme"}, Policy: json.RawMessage(`{"weight":3}`)})
	require.NoError(t, err)
	require.Equal(t, 3, set.Policy.Weight)
	owners, err := control.Ask(t.Context(), c, control.OwnersList, control.None{})
	require.NoError(t, err)
	require.Equal(t, 3, owners.Owners["acme"].Weight)

	night := control.ScheduleName{Worker: "acme/w", Name: "night"}
	paused, err := control.Ask(t.Context(), c, control.SchedulesPause, night)
	require.NoError(t, err)
	require.True(t, paused.Paused)
	_, err = control.Ask(t.Context(), c, control.SchedulesResume, night)
	require.NoError(t, err)
	ticks, err := control.Ask(t.Context(), c, control.SchedulesNext, control.NextTicks{ScheduleName: night, Count: 2})
	require.NoError(t, err)
	require.Len(t, ticks.Ticks, 2)

	letters, err := control.Ask(t.Context(), c, control.DeadList,
		control.ListLetters{Filter: control.Filter{Owner: "acme", Limit: 2}})
	require.NoError(t, err)
	require.Len(t, letters.Letters, 2)
	require.EqualValues(t, 2, letters.Next)
	job, err := control.Ask(t.Context(), c, control.DeadReplay,
		control.Replay{Selection: control.Selection{IDs: []uint64{1}}, To: "w"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		job, err = control.Ask(t.Context(), c, control.DeadJob, control.JobName{Job: job.Job})
		return err == nil && job.State != "running"
	}, patience, 5*time.Millisecond)
	require.Equal(t, []any{"done", 1}, []any{job.State, job.Done})
	stats, err := control.Ask(t.Context(), c, control.GetStats, control.None{})
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Dead.Messages)

	_, err = control.Ask(t.Context(), c, control.DeadShow, control.LetterID{ID: 99})
	var refused *control.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusNotFound, refused.Code)
	_, err = control.Ask(t.Context(), control.NewClient(h.nc, "pinwheel", ""), control.DeadPurge,
		control.Selection{All: true})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusUnauthorized, refused.Code)
	_, err = control.Ask(t.Context(), control.NewClient(h.nc, "elsewhere", ""), control.GetStats, control.None{})
	require.ErrorIs(t, err, nats.ErrNoResponders)
}
