package guarantees_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wrongBy is the maximum error of the clock of a process, in both directions.
const wrongBy = 10 * time.Minute

// setClock sets the clock of a process of the fleet fast by that many seconds. The process may be running.
func setClock(t testing.TB, dir, name string, seconds int64) (path string) {
	t.Helper()
	path = filepath.Join(dir, name+".clock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(seconds)), 0)
	require.NoError(t, err)
	return path
}

// randomClock returns 0 sometimes, and otherwise an error of up to wrongBy.
func randomClock(random *rand.Rand) int64 {
	if random.IntN(3) == 0 {
		return 0
	}
	return random.Int64N(int64(2*wrongBy/time.Second)) - int64(wrongBy/time.Second)
}

// stepClock sets the clock of a process. That is not a fault: all results must be as if nothing was broken.
func (b *breaker) stepClock(_ string, who int, long time.Duration) {
	fast := int64((long - 2*time.Second) * 300 / time.Second) // it is random because long is random
	setClock(b.t, b.dir, b.fleet[who].name, fast)
}

// tellTime is what the test binary runs to show that its clock can be set.
func tellTime() {
	for range 2 {
		began := time.Now()
		fmt.Println(began.Unix())
		var line string
		_, _ = fmt.Scanln(&line)
		fmt.Println(time.Since(began) < wrongBy/2)
	}
}

// TestClocksCanBeSet shows that a child of the test has its own clock, which can be set while it runs.
func TestClocksCanBeSet(t *testing.T) {
	dir := t.TempDir()
	path := setClock(t, dir, "child", 600)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), asClock+"=1", ownClock+"="+path)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	var errs strings.Builder
	child.Stderr = &errs
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	defer in.Close()
	for _, offset := range []int64{600, -300} {
		var told int64
		_, err = fmt.Fscanln(out, &told)
		if err != nil {
			_ = child.Wait()
			t.Skip(errs.String())
		}
		require.InDelta(t, time.Now().Unix()+offset, told, 5)
		setClock(t, dir, "child", -300)
		fmt.Fprintln(in)
		var same bool
		_, err = fmt.Fscanln(out, &same)
		require.NoError(t, err)
		require.True(t, same, "how much time has passed does not depend on the clock")
	}
}
