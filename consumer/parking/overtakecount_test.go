package parking

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// An owner overtakes only if it has few events and others have a backlog.
func TestWhoOvertakes(t *testing.T) {
	b := &Overtaker{cfg: OvertakeConfig{Prefix: events.DefaultPrefix, Least: 6400}} // so 100 are few
	few := func(subjects map[string]uint64) (owners []string) {
		for _, o := range b.withFew(subjects, 0) {
			require.NotEmpty(t, o.subjects)
			owners = append(owners, o.owner)
		}
		return owners
	}
	lane := func(owners map[string]uint64) map[string]uint64 {
		subjects := map[string]uint64{"pinwheel.events.3.task.acme": 7, "pinwheel.pin": 1, "pinwheel.events.3.task.a b.w": 2}
		for owner, n := range owners {
			subjects["pinwheel.events.3.task."+owner+".w"] = n - n/2
			subjects["pinwheel.events.3.fetch."+owner+".v"] = n / 2
		}
		return subjects
	}
	require.Equal(t, []string{"a", "b", "c"},
		few(lane(map[string]uint64{"noisy": 6400, "b": 20, "a": 1, "c": 100, "d": 101})))
	require.Empty(t, few(lane(map[string]uint64{"a": 1, "b": 6300})), "a backlog is more")
	require.Empty(t, few(lane(map[string]uint64{"a": 1, "b": 3200, "c": 3000})))
	require.Equal(t, []string{"a"}, few(lane(map[string]uint64{"a": 1, "b": 3200, "c": 3200})), "of two")
	require.Empty(t, few(lane(nil)))

	owners := map[string]uint64{"noisy": 10_000}
	for i := range 1000 {
		owners[fmt.Sprint("q", i)] = 8
	}
	require.Len(t, few(lane(owners)), overtakeAtOnce/8)
	for owner := range owners {
		if owner != "noisy" {
			owners[owner] = 1
		}
	}
	require.Len(t, few(lane(owners)), overtakeOwners)
	delete(owners, "noisy")
	for owner := range owners {
		owners[owner] = 99
	}
	require.Empty(t, few(lane(owners)), "a lane of many owners with few each has nobody to overtake")
}
