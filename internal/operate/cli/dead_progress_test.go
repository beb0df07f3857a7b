package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
)

// On a terminal the last line shows the progress. It is removed before a line about a letter is printed.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	p := &progress{to: terminal.New(nil, &out, &err), verb: "replayed", live: true,
		begun: time.Now().Add(-2 * time.Second)}
	letter := &events.DeadLetter{Seq: 7, Owner: "acme", Worker: "w", Kind: "task",
		Failure: *events.NewFailure(events.ReasonCPU, "x", "")}
	p.step(deadletter.Progress{Letter: letter, Counts: deadletter.Counts{Total: 100, Done: 20}})
	require.Equal(t, "7 acme/w task cpu\n20 of at most 100 replayed, 10/s", out.String())
	out.Reset()
	p.step(deadletter.Progress{Letter: letter, Err: errors.New("no \x1b[31m"),
		Counts: deadletter.Counts{Total: 100, Done: 20, Failed: 1}})
	require.Equal(t, "\r\x1b[K", out.String(), "not more often than ten times a second")
	require.Equal(t, "pinwheel: no \\u001b[31m\n", err.String())
	out.Reset()
	p.last = time.Time{}
	p.tell(22, 100)
	p.clear()
	p.clear()
	require.Equal(t, "22 of at most 100 replayed, 11/s\r\x1b[K", out.String())
}
