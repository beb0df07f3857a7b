package jsapi

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// A message that counts as a PubAck has no headers and is a short JSON object.
func FuzzIsPubAck(f *testing.F) {
	for _, s := range []string{
		`{"stream":"PINWHEEL_EVENTS","seq":1}`, `{"stream":"PINWHEEL_EVENTS", "seq":1,"duplicate": true}`,
		`{"stream":"PINWHEEL_EVENTS", "domain":"x", "seq":1}`,
		`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"PINWHEEL_EVENTS","seq":0}`, `{"stream":"PINWHEEL_`, `{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		require.False(t, IsPubAck(&nats.Msg{Header: nats.Header{"X": nil}, Data: body}))
		if IsPubAck(&nats.Msg{Data: body}) {
			require.LessOrEqual(t, len(body), maxPubAck)
			require.True(t, strings.HasPrefix(string(body), `{"`))
		}
	})
}
