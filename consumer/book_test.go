package consumer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// However long nobody looks at the streams: what the processes of a fleet let in of an owner is together what it may have, and leaves room for others.
func TestProcessesLetInTogetherWhatAnOwnerMayHave(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBytes = 8 << 20
	for _, processes := range []int64{1, 2, 5} {
		for _, owners := range []string{"a", "abc"} {
			let := 0
			for range processes {
				c := &Consumer{usage: newUsage(cfg)}
				c.processes.Store(processes)
				for _, s := range []*fullness{c.usage.events, c.usage.parked} {
					s.limit.Store(uint64(cfg.MaxBytes))
				}
				for refused := map[rune]bool{}; len(refused) < len(owners); {
					for _, owner := range owners {
						if c.admitStored(string(owner), 3000) != nil {
							refused[owner] = true
						} else {
							let += 3000 + bookOverhead
						}
					}
				}
			}
			most := int(cfg.MaxBytes) * len(owners) / (len(owners) + 1)
			require.InDelta(t, most, let, float64(most)/20, "%d processes, owners %s", processes, owners)
		}
	}
}
