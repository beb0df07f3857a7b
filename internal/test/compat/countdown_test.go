package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
)

func TestCountdown(t *testing.T) {
	t.Parallel()
	f := start(t, "countdown.js")
	send := func(path string, args ...string) (string, string) {
		r := f.Pinwheel(append([]string{"send", "fetch", "dev/countdown", "--path", path}, args...)...)
		return r.Out, r.Err
	}
	tick := func(n int) string { return fmt.Sprintf("id: %d\nevent: tick\ndata: {\"left\":%d}\n\n", n, n) }
	const done = "id: 0\nevent: done\ndata: {\"left\":0}\n\n"

	out, errs := send("/?from=3&everyMs=5")
	require.Equal(t, "retry: 5\n\n"+tick(3)+tick(2)+tick(1)+done, out)
	require.Contains(t, errs, "content-type: text/event-stream")
	out, _ = send("/?from=3&everyMs=0", "--header", "Last-Event-ID=2")
	require.Equal(t, "retry: 0\n\n"+tick(1)+done, out, "it goes on where it was")
	out, errs = send("/?from=3", "--header", "Last-Event-ID=0")
	require.Empty(t, out)
	require.Contains(t, errs, "HTTP 204 ")
	_, errs = send("/?from=x")
	require.Contains(t, errs, "HTTP 400 ")
}

// Events arrive when they are created, and the handler notices when a listener leaves.
func TestCountdownStopsWhenNobodyListens(t *testing.T) {
	t.Parallel()
	f := start(t, "countdown.js")
	logs, err := f.NC.SubscribeSync("pinwheel.logs.dev.countdown")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	c, err := client.New(f.NC)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reply, body, err := c.Open(ctx, client.Request{Kind: events.Fetch, Owner: "dev", Worker: "countdown",
		URL: "/?from=1000&everyMs=50"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, reply.Status)
	var text strings.Builder
	piece := make([]byte, 4096)
	for !strings.Contains(text.String(), "id: 998\n") {
		n, err := body.Read(piece)
		require.NoError(t, err)
		text.Write(piece[:n])
	}
	require.NotContains(t, text.String(), "id: 900\n", "it is not all made at once")
	require.NoError(t, body.Close())
	_, err = body.Read(piece)
	require.NotErrorIs(t, err, io.EOF)
	m, err := logs.NextMsg(time.Minute)
	require.NoError(t, err)
	var line struct{ Text string }
	require.NoError(t, json.Unmarshal(m.Data, &line))
	require.Regexp(t, `^nobody listens any more: [1-9]\d* were left$`, line.Text)
}
