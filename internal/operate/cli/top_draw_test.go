package cli

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

func shown() flow.Summary {
	return flow.Summary{
		At: time.Unix(1_700_000_000, 0), Rates: flow.Rates{Events: 12, Failed: 0.5, DurationP50: new(0.7),
			DurationP99: new(96.85)},
		Stored: flow.Stored{Events: 7, OldestSeconds: new(60.0), Dead: 3},
		Processes: []flow.Process{{Node: "node-a", Rates: flow.Rates{Events: 10, DurationP99: new(0.99)}},
			{Node: "node-b", Draining: true, Rates: flow.Rates{Events: 2, DurationP99: new(98.75)}},
			{Node: "node-c", New: true}},
		Owners:  []flow.Owner{{Owner: "beta", Queued: 3, Parking: true}, {Owner: "acme", Queued: 2, Running: 2}},
		Missing: []string{"old"},
		Workers: []flow.Worker{{Worker: "acme/\x1b[2Jw", State: "active", Events: 11, P50: new(0.7), P99: new(96.85)}},
	}
}

func TestFlowIsDrawn(t *testing.T) {
	t.Parallel()
	f := shown()
	drawn := draw(f, 0, 0)
	for _, want := range []string{
		"events/s    12     runs    p50     700 µs  p99           97 ms", "   stored  events       7  oldest         1m0s", "dead letters      3",
		"node-b        2.0   99 ms        0", "draining", "node-c          -       -", "old             -       -", "does not answer", "beta        3        0  parks",
		`acme/\u001b[2Jw        11         0  700 µs  97 ms  active`,
	} {
		require.Contains(t, drawn, want, drawn)
	}
	require.NotContains(t, drawn, "CELLS")
	require.Contains(t, draw(flow.Summary{}, 0, 0), "No events wait or run.")
	f.Processes[1].Cells, f.Processes[1].CellBytes = 2, 91<<20
	drawn = draw(f, 0, 0)
	for _, want := range []string{"HEAP  CELLS  THEIR MEMORY", "0 MB      2         91 MB  draining", "-             -  does not answer"} {
		require.Contains(t, drawn, want, drawn)
	}

	own := flow.OfOwner{At: f.At, Owner: f.Owners[1], Events: 12, Failed: 0.5, DurationP50: new(0.7),
		DurationP99: new(96.85), Processes: 2, Workers: f.Workers, Missing: f.Missing}
	drawn = drawOwn(own, 0, 0)
	for _, want := range []string{
		"owner acme in 2 processes   do not answer: old", "events/s   12     runs  p50      700 µs  p99     97 ms", "failed/s  0.5     now   running       2  queued      2",
		`acme/\u001b[2Jw        11         0  700 µs  97 ms  active`,
	} {
		require.Contains(t, drawn, want, drawn)
	}
	require.Contains(t, drawOwn(flow.OfOwner{}, 0, 0), "No worker has run since its process started.")
}

// A narrow and low terminal gets what fits.
func TestFlowFitsTheTerminal(t *testing.T) {
	t.Parallel()
	lines := strings.Split(draw(shown(), 20, 9), "\n")
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
	d := terminal.New(program, program, program).OpenScreen(false)
	ended := make(chan struct{})
	d.Keys(func() { close(ended) })
	require.NoError(t, d.Show(fleetUpdate(shown()).draw))
	require.Eventually(t, shows("\x1b[?1049h"), time.Minute, time.Millisecond)
	require.Eventually(t, shows("beta        3        0  \x1b[33mparks\x1b[0m\x1b[K\r\n"), time.Minute, time.Millisecond)
	_, err = user.WriteString("xq")
	require.NoError(t, err)
	<-ended
	d.Close()
	require.Eventually(t, shows("\x1b[?25h\x1b[?1049l"), time.Minute, time.Millisecond)
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Where no terminal is, one table follows the other.
func TestTopWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := terminal.New(os.Stdin, &out, &out).OpenScreen(false)
	require.NoError(t, d.Show(fleetUpdate(shown()).draw))
	d.Close()
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, out.String(), "PROCESS")
}
