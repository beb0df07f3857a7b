package cells

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
)

// figures are the metrics of the pools, by name and labels.
func (s *stage) figures() map[string]float64 {
	s.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(s.t, reg.Register(s.pools.metrics))
	families, err := reg.Gather()
	require.NoError(s.t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// A class that has no room is told, and how many owners' events wait for it. How cells ended is told with their owners.
func TestAccount(t *testing.T) {
	t.Parallel()
	var s *stage
	s = openStage(t, func(c *Config) {
		c.Most, c.Confine = 1, "on"
		c.Queued = func() (list []string) {
			for _, o := range s.dispatch.Figures().BusyOwners() {
				if o.Queued > 0 {
					list = append(list, o.Owner)
				}
			}
			return list
		}
	})
	s.classes["bob"] = "others"
	require.Equal(t, Account{Confine: "on", Most: 1, Cgroups: true}, s.pools.Account())
	require.NotContains(t, s.figures(), "pinwheel_cell_confined "+confine.Files)
	s.install("alice", "w", echo)
	s.install("bob", "w", echo)
	s.submit("alice", "w", "1")
	first := s.cell(t)
	first.begin()
	s.submit("bob", "w", "1")
	require.Eventually(t, func() bool { return len(s.pools.Account().Waiting) > 0 }, patience, time.Millisecond)
	require.Equal(t, []string{"others"}, s.pools.Account().Waiting)
	all := s.figures()
	require.EqualValues(t, 1, all["pinwheel_cell_waiting_classes"])
	require.EqualValues(t, 1, all["pinwheel_cell_waiting_owners"])
	require.EqualValues(t, 1, all["pinwheel_cell_starts_total"])
	require.EqualValues(t, 1, all["pinwheel_cell_confined "+confine.Files])

	first.say(wire.Kind(255), func(w *wire.Writer) { w.Text("\x1b[2J") })
	second := s.cell(t)
	second.begin()
	second.kill()
	s.cell(t)
	a := s.pools.Account()
	require.EqualValues(t, 2, a.Starts)
	require.Len(t, a.Ends, 2)
	require.Equal(t, []string{"lie", "all", "alice"}, []string{a.Ends[0].How, a.Ends[0].Class, a.Ends[0].Owners[0]})
	require.NotEmpty(t, a.Ends[0].Why)
	require.Equal(t, []string{"died", "it was a fake"}, []string{a.Ends[1].How, a.Ends[1].Why})
	require.Less(t, time.Since(a.Ends[0].At), time.Hour)
	require.Empty(t, s.pools.metrics.account(time.Now().Add(endsLast)).Ends)
}

// A cell that the kernel has ended because of its memory is counted and named apart from others, and recorded. Its
// event runs again in the next one.
func TestAccountOfMemory(t *testing.T) {
	t.Parallel()
	s := openStage(t, func(c *Config) { c.Confine, c.NoCgroups = "on", "not delegated" })
	s.install("alice", "w", echo)
	s.submit("alice", "w", "1")
	c := s.cell(t)
	c.begin()
	require.Equal(t, []any{false, "not delegated"}, []any{s.pools.Account().Cgroups, s.pools.Account().NoCgroups})
	require.EqualValues(t, 0, s.figures()["pinwheel_cell_confined cgroups"])
	c.memory.Store(true)
	c.kill()
	s.cell(t).begin()
	a := s.pools.Account()
	require.Len(t, a.Ends, 1)
	require.Equal(t, []string{"memory", "all", "alice"}, []string{a.Ends[0].How, a.Ends[0].Class, a.Ends[0].Owners[0]})
	require.EqualValues(t, 1, s.figures()["pinwheel_cell_ends_total memory"])
	require.Contains(t, s.log.String(), "a cell used more memory than it may")
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, 1, s.lied["all: alice"], "Config.Caused")
}

// What the system refuses is known from a probe, from each cell that starts, and from one that does not.
func TestAccountOfConfinement(t *testing.T) {
	t.Parallel()
	refused := []string{confine.Files + ": no Landlock"}
	var fault atomic.Pointer[error]
	s := openStage(t, func(c *Config) {
		start := c.Start
		c.Confine = "require"
		c.Start = func(ctx context.Context) (*Process, error) {
			if err := fault.Load(); err != nil {
				return nil, *err
			}
			p, err := start(ctx)
			if err == nil {
				p.Refused = refused
			}
			return p, err
		}
	})
	s.pools.Probed([]string{confine.Limits + ": no"}, nil)
	require.Equal(t, []string{confine.Limits + ": no"}, s.pools.Account().Unconfined)
	require.EqualValues(t, 0, s.figures()["pinwheel_cell_confined "+confine.Limits])

	s.install("alice", "w", echo)
	done := s.submit("alice", "w", "1")
	f := s.cell(t)
	a := f.begin()
	all := s.figures()
	require.EqualValues(t, 0, all["pinwheel_cell_confined "+confine.Files])
	require.EqualValues(t, 1, all["pinwheel_cell_confined "+confine.Limits])
	require.Equal(t, refused, s.pools.Account().Unconfined)
	fault.Store(new(fmt.Errorf("start a cell: %w", &spawn.UnconfinedError{Refused: []string{confine.Users + ": no"}})))
	f.finish(a)
	s.wait(done)
	s.submit("alice", "w", "2")
	f.await(wire.Attempts)
	f.kill()
	require.Eventually(t, func() bool { return s.pools.Account().Fault != "" }, patience, time.Millisecond)
	got := s.pools.Account()
	require.Equal(t, []string{confine.Users + ": no"}, got.Unconfined)
	require.Contains(t, got.Fault, "this system refuses a part of its confinement: users: no")
	require.Equal(t, "start", got.Ends[len(got.Ends)-1].How)
	require.EqualValues(t, 0, s.figures()["pinwheel_cell_confined "+confine.Users])

	s.pools.Probed(nil, fmt.Errorf("no memory"))
	require.NotContains(t, s.figures(), "pinwheel_cell_confined "+confine.Files, "it is not known")
}

// What is kept is bounded, and printable.
func TestAccountsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMetrics(nil)
	for range 3 * mostEnds {
		m.badly(End{How: "died", Why: "\x1b" + strings.Repeat("ä", mostWhy)})
	}
	m.badly(End{How: "lie", Why: "x"})
	a := m.account(time.Now())
	require.Len(t, a.Ends, mostEnds+1)
	require.LessOrEqual(t, len(a.Ends[0].Why), mostWhy+2)
	require.True(t, strings.HasPrefix(a.Ends[0].Why, "\uFFFDä"))
	var sum Account
	sum.Add(a)
	other := Account{
		Confine: "on", Most: 3, Starts: 2, Probed: true, Unconfined: []string{"files: no"}, Fault: "no",
		Waiting: []string{"a"}, MoreWaiting: 1,
	}
	sum.Add(other)
	require.Len(t, sum.Ends, mostEnds+1)
	sum.Ends = nil
	require.Equal(t, other, sum)
}
