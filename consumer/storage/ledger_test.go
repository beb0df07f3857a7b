package storage

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Owners that have more stored than is free give up their oldest until none has more. An owner that has less keeps
// everything.
func TestOverdrafts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		l, limit, total, seq := &ledger{}, uint64(1<<20), uint64(0), uint64(0)
		for owner := range 1 + r.IntN(8) {
			for range r.IntN(200) {
				size := 1 + r.Uint64N(8<<10)
				if total+size > limit {
					break
				}
				seq++
				total += size
				l.add(string(rune('a'+owner)), seq, size, 2<<10)
			}
		}
		require.Equal(t, total, l.bytes)
		had := map[string]uint64{}
		for owner, s := range l.owners {
			had[owner] = s.bytes
		}
		free := limit - total
		gave := map[string]bool{}
		for _, o := range l.overdrafts(total, limit) {
			require.Greater(t, had[o.owner], free)
			require.Equal(t, had[o.owner], o.had)
			require.Positive(t, o.gives)
			before := l.bytes
			l.cut(o.owner, o.before)
			require.Equal(t, o.gives, before-l.bytes)
			free += o.gives
			gave[o.owner] = true
		}
		for owner := range had {
			now := uint64(0)
			if s := l.owners[owner]; s != nil {
				now = s.bytes
			}
			require.LessOrEqual(t, now, free)
			if !gave[owner] {
				require.Equal(t, had[owner], now)
			} else {
				require.GreaterOrEqual(t, now+40<<10, free/3, "it keeps about what it may have")
			}
		}
	}
}

func TestLedgerBegins(t *testing.T) {
	l := &ledger{}
	for seq := range uint64(10) {
		l.add([]string{"a", "b"}[seq%2], seq+1, 10, 1)
	}
	l.begin(5)
	require.Equal(t, uint64(60), l.bytes)
	l.begin(10)
	require.Equal(t, uint64(10), l.bytes)
	require.NotContains(t, l.owners, "a")
	require.Equal(t, uint64(10), l.through)
}
