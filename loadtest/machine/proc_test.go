package machine

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseProc(t *testing.T) {
	p, ok := parseStat([]byte("42 (a (b) c d) S 7 42 42 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 1 0 100 1 1 1"))
	require.True(t, ok)
	require.Equal(t, process{7, 1750 * time.Millisecond}, p)
	_, ok = parseStat([]byte("42 (a) S 7"))
	require.False(t, ok)
	require.Equal(t, 860*time.Millisecond, parseBusy("cpu  10 20 30 999 999 1 5 20 7 7\ncpu0 1 1"))
	now, peak := parseStatus("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	require.Equal(t, []int64{1 << 20, 2 << 20}, []int64{now, peak})
}

func TestFamily(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	require.Contains(t, family(os.Getpid()), cmd.Process.Pid)
	require.Equal(t, []int{cmd.Process.Pid}, family(cmd.Process.Pid))
	_, ok := readProcess(cmd.Process.Pid)
	require.True(t, ok)
}

// TestForeignCPU starts another process, unknown to the meter, that keeps a core busy.
func TestForeignCPU(t *testing.T) {
	m := NewMeter(nil, nil)
	before := m.Read()
	start := time.Now()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	require.Eventually(t, func() bool { return UsedCPU([]int{cmd.Process.Pid}) > 200*time.Millisecond }, time.Minute,
		10*time.Millisecond)
	wall := time.Since(start).Seconds()
	require.GreaterOrEqual(t, Foreign(before, m.Read())*wall, 0.1)
}
