package secrets

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Data opens at the key for which it was encrypted, and nowhere else. Secrets of workers and data are not mistaken for
// each other.
func TestDataOpensAtItsKey(t *testing.T) {
	t.Parallel()
	ids := newIdentities(t, 1)
	text, err := SealData("x.cert.acme.example", []byte("private\x00key"), ids.Recipient())
	require.NoError(t, err)
	require.NotContains(t, string(text), "private")
	got, err := ids.OpenData("x.cert.acme.example", text)
	require.NoError(t, err)
	require.Equal(t, "private\x00key", string(got))

	_, err = ids.OpenData("x.cert.beta.example", text)
	require.EqualError(t, err, "x.cert.beta.example: its ciphertext was made for another key")
	_, err = newIdentities(t, 1).OpenData("x.cert.acme.example", text)
	require.ErrorContains(t, err, "it was encrypted to another key")
	_, err = ids.Open(shop, text)
	require.ErrorIs(t, err, errNotOurs)
	_, err = ids.OpenData("x.cert.acme.example", sealed(t, shop, "value", ids.Recipient()))
	require.ErrorIs(t, err, errNotOurs)
}
