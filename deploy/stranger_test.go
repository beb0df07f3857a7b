package deploy_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A client that acknowledges what is published may answer a deploy before the stream does. The error says so.
func TestStrangersThatAnswerADeploy(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	for bucket, what := range map[string]string{"PINWHEEL_WORKERS": "store record: ",
		"PINWHEEL_DEPLOYMENTS": "store deployment: "} {
		s := open(t, natstest.Connect(t, srv), deploy.Config{})
		stranger := natstest.Connect(t, srv)
		sub, err := stranger.Subscribe("$KV."+bucket+".>", func(m *nats.Msg) { _ = m.Respond([]byte("+ACK")) })
		require.NoError(t, err)
		require.NoError(t, stranger.Flush())
		for n := 0; err == nil && n < 300; n++ { // sometimes the stream is first
			_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: module(n)}, isFine)
		}
		require.ErrorContains(t, err, what+"a client of NATS that is not Pinwheel's has answered what was published to $KV."+bucket+".acme.w, before the stream did")
		require.ErrorContains(t, err, "nats server request connections --subscriptions")
		require.NoError(t, sub.Unsubscribe())
		require.NoError(t, stranger.Flush())
	}
}
