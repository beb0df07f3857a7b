package minutes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/internal/process/minutes"
)

// counters are what a process has counted.
type counters struct {
	looks  int
	all    dispatch.Flow
	owners []dispatch.OwnerWork
}

func (c *counters) look(most int) minutes.Look {
	c.looks++
	return minutes.Look{All: c.all, Owners: slices.Clone(c.owners[:min(most, len(c.owners))])}
}

// add counts attempts of an owner, of which some failed.
func (c *counters) add(owner string, ended, failed uint64) {
	c.all.Retried += failed
	c.all.Duration.Count += ended
	c.all.Duration.Buckets = []uint64{c.all.Duration.Count, 0}
	for i := range c.owners {
		if o := &c.owners[i]; o.Owner == owner {
			o.Ended, o.Failed = o.Ended+ended, o.Failed+failed
			o.Duration = dispatch.Histogram{Count: o.Ended, Buckets: []uint64{o.Ended, 0}}
			return
		}
	}
	c.owners = append(c.owners, dispatch.OwnerWork{Owner: owner, Ended: ended, Failed: failed,
		Duration: dispatch.Histogram{Count: ended, Buckets: []uint64{ended, 0}}})
}

// A minute is kept when it is over, with what was counted in it. The oldest one goes after an hour.
func TestMinutesAreKept(t *testing.T) {
	t.Parallel()
	c := &counters{}
	r := minutes.New(c.look)
	at := time.Date(2026, 1, 2, 3, 4, 20, 0, time.UTC)
	c.add("acme", 5, 0) // before the first look
	r.Tick(at)
	c.add("acme", 7, 2)
	c.add("beta", 1, 0)
	r.Tick(at.Add(39 * time.Second))
	require.Empty(t, r.Of(""), "the minute goes on")
	require.Equal(t, 1, c.looks, "and nothing looks")
	r.Tick(at.Add(40 * time.Second))
	all := r.Of("")
	require.Len(t, all, 1)
	require.Equal(t, []any{time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), uint64(8), uint64(2), []uint64{8, 0}},
		[]any{all[0].At, all[0].Ended, all[0].Failed, all[0].Duration})
	acme := r.Of("acme")[0]
	require.Equal(t, []any{uint64(7), uint64(2), []uint64{7, 0}}, []any{acme.Ended, acme.Failed, acme.Duration})
	require.Zero(t, r.Of("none")[0].Ended)
	c.owners[0].Ended = 1 // its workers were removed
	for n := range 70 {
		r.Tick(at.Add(time.Duration(n+2) * time.Minute))
	}
	require.Len(t, r.Of(""), 60)
	require.Len(t, r.Of("acme"), 60)
	require.Equal(t, at.Add(11*time.Minute).Truncate(time.Minute), r.Of("")[0].At)
}

// However many owners there are, those that did most in a minute are kept, and no figures are made up.
func TestMinutesOfOwnersAreBounded(t *testing.T) {
	t.Parallel()
	c := &counters{}
	for n := range 1000 {
		c.add(fmt.Sprintf("o%04d", n), 1, 0)
	}
	r := minutes.New(c.look)
	at := time.Date(2026, 1, 2, 3, 4, 20, 0, time.UTC)
	r.Tick(at)
	for n := range 30 {
		c.add(fmt.Sprintf("o%04d", n), uint64(100+n), 0)
	}
	c.owners[29], c.owners[700] = c.owners[700], c.owners[29]
	c.owners[0], c.owners[800] = c.owners[800], c.owners[0]
	r.Tick(at.Add(time.Minute))
	require.EqualValues(t, 128, r.Of("o0028")[0].Ended)
	require.EqualValues(t, 109, r.Of("o0009")[0].Ended)
	require.Zero(t, r.Of("o0008")[0].Ended, "not among the 20 with most")
	require.Zero(t, r.Of("o0800")[0].Ended, "what it had done before is not known")
	require.EqualValues(t, 30*100+29*30/2, r.Of("")[0].Ended, "all are counted")
}
