package main

import (
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// What the service does is tested by TestClientsUnderTheShippedConfigurations in examples.

func TestOwnersAreNames(t *testing.T) {
	issuer, err := nkeys.CreateAccount()
	require.NoError(t, err)
	seed, err := issuer.Seed()
	require.NoError(t, err)
	_, err = newService(string(seed), []byte(`{"00": "*"}`))
	require.ErrorContains(t, err, `owner "*"`)
	_, err = newService("", nil)
	require.ErrorContains(t, err, "CALLOUT_SEED")
}
