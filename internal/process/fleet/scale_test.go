package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// A process is busy by the time in which its threads are awake, or by the slots that its events take.
func TestLoadOfAProcess(t *testing.T) {
	t.Parallel()
	start := time.Now()
	l := load{threads: 2, background: 2, slots: 10}
	after := func(seconds int, slept time.Duration, running int) loadLook {
		return loadLook{start.Add(time.Duration(seconds) * time.Second), slept, running}
	}
	for _, c := range []struct {
		looks []loadLook
		want  float64
	}{
		{[]loadLook{after(0, 0, 0), after(10, 40*time.Second, 0)}, 0},
		{[]loadLook{after(0, time.Hour, 0), after(10, time.Hour+30*time.Second, 0)}, 0.5}, // awake for 10 s of 20
		{[]loadLook{after(0, 0, 0), after(10, 10*time.Second, 0)}, 1},                     // background threads too
		{[]loadLook{after(0, 0, 20), after(5, 20*time.Second, 10), after(10, 40*time.Second, 0)}, 0.5},
		{[]loadLook{after(0, 0, 90), after(10, 40*time.Second, 90)}, 1},
	} {
		l.looks = c.looks
		require.InDelta(t, c.want, *l.share(), 1e-9, "%v", c.looks)
	}
	l.looks = l.looks[:1]
	require.Nil(t, l.share(), "a process that has just started does not know")
}

// The fleet is asked once a second at most, whoever asks and whatever comes of it. A requester that goes away before it
// has an answer takes none from others.
func TestTheFleetIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	p := &Process{}
	_, err := p.Scale(t.Context(), 0)
	require.EqualError(t, err, "the fleet's counts are not known: this process starts")
	asked, away := 0, error(nil)
	p.scale.answer(func(ctx context.Context) (flow.Snapshot, error) {
		asked++
		one := control.StreamStats{Messages: 3000}
		return flow.Snapshot{Flows: []control.Flow{{}}, Stored: control.FleetStats{Events: &one,
			Parked: &control.StreamStats{}}}, errors.Join(away, ctx.Err())
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	within := func() { p.scale.at = time.Now().Add(time.Hour) } // what follows is within a second, however slow it is
	for target, want := range map[int]int{0: 3, 1000: 3, 100: 30} {
		for range 10 {
			got, err := p.Scale(gone, target)
			require.NoError(t, err)
			require.Equal(t, want, got.(flow.Scale).Wanted)
			within()
		}
	}
	require.Equal(t, 1, asked)
	away, p.scale.at = errors.New("NATS is away"), time.Now().Add(-scaleEvery)
	for range 10 {
		_, err = p.Scale(t.Context(), 0)
		require.EqualError(t, err, "the fleet's counts are not known: NATS is away")
		within()
	}
	require.Equal(t, 2, asked, "an error holds for a second too")
}
