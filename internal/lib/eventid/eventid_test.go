package eventid

import (
	"encoding/hex"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An id says nothing about the next one, of this Maker or of another, and costs one allocation.
func TestIDsCannotBeGuessed(t *testing.T) {
	makers := []*Maker{New("http"), New("http")}
	seen, last, changed := map[string]bool{}, make([]byte, idBytes), 0
	const n = 2000 // more than a pool has
	for i := range n {
		digits, ok := strings.CutPrefix(makers[i%2].Next(), "http-")
		require.True(t, ok)
		require.False(t, seen[digits], "%s twice", digits)
		seen[digits] = true
		id, err := hex.DecodeString(digits)
		require.NoError(t, err)
		require.Len(t, id, idBytes)
		for j := range id {
			changed += bits.OnesCount8(id[j] ^ last[j])
		}
		last = id
	}
	require.InDelta(t, 0.5, float64(changed)/(n*8*idBytes), 0.02, "of the bits change from one id to the next")
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { makers[0].Next() }), 1.0)
}

func BenchmarkNext(b *testing.B) {
	m := New("http")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Next()
		}
	})
}
