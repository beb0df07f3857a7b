package storage

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// However long no process checks the streams, the processes of a fleet together admit only an owner's share, and leave
// room for others.
func TestProcessesLetInTogetherWhatAnOwnerMayHave(t *testing.T) {
	cfg := Config{Prefix: events.DefaultPrefix, MaxBytes: 8 << 20, Replicas: 1}
	for _, processes := range []int64{1, 2, 5} {
		for _, owners := range []string{"a", "abc"} {
			let := 0
			for range processes {
				u := New(cfg, nil, nil, zerolog.Nop())
				u.processes.Store(processes)
				for _, s := range []*level{u.events, u.parked} {
					s.limit.Store(uint64(cfg.MaxBytes))
				}
				for refused := map[rune]bool{}; len(refused) < len(owners); {
					for _, owner := range owners {
						if u.Admit(string(owner), 3000) != nil {
							refused[owner] = true
						} else {
							let += 3000 + parkedOverhead
						}
					}
				}
			}
			most := int(cfg.MaxBytes) * len(owners) / (len(owners) + 1)
			require.InDelta(t, most, let, float64(most)/20, "%d processes, owners %s", processes, owners)
		}
	}
}
