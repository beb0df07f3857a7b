package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/control"
)

func hist(buckets ...uint64) control.Histogram {
	h := control.Histogram{Bounds: []float64{0.001, 0.01, 0.1}, Buckets: buckets}
	for _, n := range buckets {
		h.Count += n
	}
	return h
}

func snapshots() (before, now snapshot) {
	at := time.Unix(1_700_000_000, 0)
	process := func(id string, at time.Time, duration control.Histogram, failed uint64) control.Flow {
		return control.Flow{Member: control.Member{ID: id, Node: "node-" + id}, At: at, Duration: duration, Failed: failed, Owners: []control.OwnerFlow{}}
	}
	before = snapshot{at: at, flows: []control.Flow{process("a", at, hist(10, 0, 0), 5), process("gone", at, hist(1, 1, 1), 0), process("b", at.Add(time.Hour), hist(0, 0, 0), 0)}}
	a, b := process("a", at.Add(2*time.Second), hist(30, 0, 0), 6), process("b", at.Add(time.Hour+4*time.Second), hist(0, 0, 8), 0)
	a.Owners = []control.OwnerFlow{{Owner: "acme", Queued: 1, Running: 2}, {Owner: "beta", Queued: 3, Parking: true}}
	b.Owners, b.Draining = []control.OwnerFlow{{Owner: "acme", Queued: 1}}, true
	now = snapshot{at: at.Add(2 * time.Second), flows: []control.Flow{b, a, process("c", at, hist(100, 0, 0), 9)}, missing: []control.Member{{Node: "old"}}}
	now.stored.Events = &control.StreamStats{Messages: 7, Oldest: at.Add(-58 * time.Second)}
	now.stored.Dead = &control.StreamStats{Messages: 3}
	return before, now
}

// Rates are those between two snapshots, by the clock of each process. One that is new has none.
func TestFlowBetweenLooks(t *testing.T) {
	t.Parallel()
	f := compare(snapshots())
	require.InDelta(t, 20/2.0+8/4.0, f.Events, 0.001)
	require.InDelta(t, 0.5, f.Failed, 0.001)
	require.InDelta(t, 0.7, *f.DurationP50, 0.0001, "14 of 28, of which 20 took at most 1 ms")
	require.InDelta(t, 96.85, *f.DurationP99, 0.01)
	require.Nil(t, f.WaitP50)
	require.Equal(t, []ownerFlow{{"beta", 3, 0, true}, {"acme", 2, 2, false}}, f.Owners)
	require.Equal(t, []string{"old"}, f.Missing)
	require.Equal(t, []bool{false, false, true}, []bool{f.Processes[0].New, f.Processes[1].New, f.Processes[2].New})
	require.InDelta(t, 60, *f.Stored.OldestSeconds, 0.001)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.Contains(t, string(text), `"eventsPerSecond":12,`)
	require.Contains(t, string(text), `"waitP50Ms":null`)

	drawn := draw(f, 0, 0)
	for _, want := range []string{
		"events/s    12     runs    p50     700 µs  p99           97 ms", "   stored  events       7  oldest         1m0s", "dead letters      3",
		"node-b        2.0   99 ms        0", "draining", "node-c          -       -", "old             -       -", "does not answer", "beta        3        0  parks",
	} {
		require.Contains(t, drawn, want, drawn)
	}
	require.Contains(t, draw(compare(snapshot{}, snapshot{}), 0, 0), "No events wait or run.")
}

// A narrow and low terminal gets what fits.
func TestFlowFitsTheTerminal(t *testing.T) {
	t.Parallel()
	lines := strings.Split(draw(compare(snapshots()), 20, 9), "\n")
	require.Len(t, lines, 9)
	require.Regexp(t, `^… \d+ more lines$`, lines[8])
	for _, l := range lines {
		require.LessOrEqual(t, len([]rune(l)), 20)
	}
}

// On a terminal, updates replace one another. What was there before comes back, and so does the mode of the terminal.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	user, program := openTerminal(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	var mu sync.Mutex
	var seen bytes.Buffer
	go func() {
		piece := make([]byte, 4096)
		for {
			n, err := user.Read(piece)
			if err != nil {
				return
			}
			mu.Lock()
			seen.Write(piece[:n])
			mu.Unlock()
		}
	}()
	shows := func(text string) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return strings.Contains(seen.String(), text) }
	}
	d := openDisplay(&env{in: program, out: program}, false)
	ended := make(chan struct{})
	d.keys(func() { close(ended) })
	require.NoError(t, d.show(compare(snapshots())))
	require.Eventually(t, shows("\x1b[?1049h"), time.Minute, time.Millisecond)
	require.Eventually(t, shows("beta        3        0  parks\x1b[K\r\n"), time.Minute, time.Millisecond)
	_, err = user.WriteString("xq")
	require.NoError(t, err)
	<-ended
	d.close()
	require.Eventually(t, shows("\x1b[?25h\x1b[?1049l"), time.Minute, time.Millisecond)
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Where no terminal is, one table follows the other.
func TestTopWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := openDisplay(&env{in: os.Stdin, out: &out}, false)
	require.NoError(t, d.show(compare(snapshots())))
	d.close()
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, out.String(), "PROCESS")
}
