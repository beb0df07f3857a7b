//go:build !asan

// AddressSanitizer maps terabytes, and these tests read all memory of the process.

package v8x

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// filled opens an isolate and fills mb MB of its heap with arrays of x.
func filled(t *testing.T, mb int, x float64) (closes func()) {
	t.Helper()
	iso := NewIsolate(roomy)
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	state, r := c.Module(Source{Name: "m.js", Text: fmt.Sprintf(`
		globalThis.kept = [];
		for (let i = 0; i < %d; i++) kept.push(new Array(1000).fill(%v));
		export default () => {}`, mb*131, x)})
	require.Equal(t, Evaluated, state, r.Err)
	return func() { c.Close(); iso.Close() }
}

// runsOf counts the places in the memory of the process where 100 numbers in a row are x.
func runsOf(t *testing.T, x float64) (n int) {
	t.Helper()
	const most = 1 << 20
	buffer, err := syscall.Mmap(-1, 0, most, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(buffer)) }()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	memory, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	defer memory.Close()
	pattern := binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	for line := range bytes.Lines(maps) {
		var start, end int64
		var access string
		if _, err := fmt.Sscanf(string(line), "%x-%x %s", &start, &end, &access); err != nil || access[0] != 'r' {
			continue
		}
		for ; start < end; start += most {
			part := buffer[:min(most, end-start)]
			if read, err := memory.ReadAt(part, start); err == nil || err == io.EOF {
				n += runs(part[:read], pattern)
			}
			clear(part)
		}
	}
	return n
}

// runs counts how often a pattern comes 100 times in a row.
func runs(text, pattern []byte) (n int) {
	for {
		i := bytes.Index(text, pattern)
		if i < 0 {
			return n
		}
		text = text[i:]
		row := 0
		for ; bytes.HasPrefix(text, pattern); row++ {
			text = text[len(pattern):]
		}
		n += row / 100
	}
}

// What a closed isolate had in its heap is in the memory of the process no more.
func TestClosedIsolatesAreCleared(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	seed := rand.Uint64()
	t.Log("seed", seed)
	x := 1e100 * rand.New(rand.NewPCG(seed, 0)).Float64()
	closes := filled(t, 8, x)
	require.Greater(t, runsOf(t, x), 1000)
	closes()
	require.NotZero(t, KeptBlocks().Kept, "its memory is still there")
	require.Zero(t, runsOf(t, x))
}

// The next isolate gets the memory of the last one. What is kept is bounded, and goes back to the system when the
// process trims its memory.
func TestMemoryOfClosedIsolatesIsUsedAgain(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	filled(t, 1, 1.5)()
	before := KeptBlocks()
	filled(t, 1, 1.5)()
	after := KeptBlocks()
	require.GreaterOrEqual(t, after.Reused-before.Reused, 8)
	require.InDelta(t, before.Kept, after.Kept, 2<<20)

	var all []func()
	for range 5 {
		all = append(all, filled(t, 20, 1.5))
	}
	for _, closes := range all {
		closes()
		require.LessOrEqual(t, KeptBlocks().Kept, MostKept)
	}
	require.Greater(t, KeptBlocks().Kept, MostKept/2)
	resident := memory(t, "RssAnon")
	Trim()
	require.Zero(t, KeptBlocks().Kept)
	require.Less(t, memory(t, "RssAnon"), resident-MostKept/2)
	filled(t, 1, 1.5)() // the next one has memory of the system
}
