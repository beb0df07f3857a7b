package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestItCallsAWorker(t *testing.T) {
	f := fleettest.Start(t)
	f.Deploy(t, "../../hello.js", "--owner", "dev")
	var out, err bytes.Buffer
	require.NoError(t, run(t.Context(), f.URL, "dev/hello", "Ada", &out, &err))
	require.Equal(t, "{\"hello\":\"Ada\"}\n", out.String())
	require.Regexp(t, `^status 200 after `, err.String())

	require.ErrorContains(t, run(t.Context(), f.URL, "dev/nobody", "Ada", &out, &err), "no-worker: ")
	require.ErrorContains(t, run(t.Context(), f.URL, "dev", "Ada", &out, &err), "write it as OWNER/WORKER")
	require.ErrorContains(t, run(t.Context(), "nats://127.0.0.1:1", "dev/hello", "Ada", &out, &err), "connect to nats://127.0.0.1:1: ")
}
