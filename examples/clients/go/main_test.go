package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientsUnderTheShippedConfigurations in examples calls workers.

func TestItRefusesWhatItCannotCall(t *testing.T) {
	var out, err bytes.Buffer
	require.ErrorContains(t, run(t.Context(), "nats://127.0.0.1:1", "dev", "Ada", &out, &err), "write it as OWNER/WORKER")
	require.ErrorContains(t, run(t.Context(), "nats://127.0.0.1:1", "dev/hello", "Ada", &out, &err),
		"connect to nats://127.0.0.1:1: ")
}
