package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestAssetsAreCreatedByManyAtOnceAndStayAsTheyAre(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		nc := natstest.Connect(t, srv)
		js := jetStream(t, nc)
		all.Go(func() { errs[i] = consumer.CreateAssets(ctx, js, testConfig(), nc.MaxPayload()) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(ctx, js, testConfig(), nc.MaxPayload()))

	s, err := js.Stream(ctx, events.StreamEvents)
	require.NoError(t, err)
	info := s.CachedInfo()
	require.EqualValues(t, 1, info.State.Msgs, "the pin message")
	require.Equal(t, events.Lanes, info.State.Consumers)
	require.False(t, info.Config.AllowRollup)
	require.False(t, info.Config.AllowMsgTTL)
	require.False(t, info.Config.AllowMsgSchedules)

	changed := testConfig()
	changed.MaxBytes *= 2
	require.NoError(t, consumer.CreateAssets(ctx, js, changed, nc.MaxPayload()))
	s, err = js.Stream(ctx, events.StreamEvents)
	require.NoError(t, err)
	require.Equal(t, testConfig().MaxBytes, s.CachedInfo().Config.MaxBytes, "the size that it has stays")
	require.EqualValues(t, 1, s.CachedInfo().State.Msgs)
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	require.NoError(t, testConfig().Validate())
	for field, change := range map[string]func(*consumer.Config){
		"Prefix":        func(c *consumer.Config) { c.Prefix = "a.b" },
		"Node":          func(c *consumer.Config) { c.Node = "" },
		"Window":        func(c *consumer.Config) { c.Window = 3 },
		"AckWait":       func(c *consumer.Config) { c.AckWait = 1 },
		"Heartbeat":     func(c *consumer.Config) { c.Heartbeat = 1 },
		"MaxBytes":      func(c *consumer.Config) { c.MaxBytes = 1 },
		"Replicas":      func(c *consumer.Config) { c.Replicas = 2 },
		"ReplyPrefixes": func(c *consumer.Config) { c.ReplyPrefixes = []string{"$JS."} },
		"DeadLetterAge": func(c *consumer.Config) { c.DeadLetterAge = 1 },
	} {
		c := testConfig()
		change(&c)
		require.ErrorContains(t, c.Validate(), fmt.Sprintf("%s ", field))
	}
}

// A process that starts does not change correct assets, and repairs the others.
func TestAssetsThatAreRightAreLeftAlone(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js, cfg := jetStream(t, nc), testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	updates, err := nc.SubscribeSync("$JS.API.STREAM.UPDATE.*")
	require.NoError(t, err)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	require.NoError(t, nc.Flush())
	n, _, err := updates.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "nothing to update")
	// An update that somebody must make by hand is not made, and one that loses nothing is.
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	odd := s.CachedInfo().Config
	odd.AllowRollup = true
	_, err = js.UpdateStream(t.Context(), odd)
	require.NoError(t, err)
	cfg.MaxBytes *= 2
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	s, err = js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.Equal(t, cfg.MaxBytes/2, s.CachedInfo().Config.MaxBytes)
	require.False(t, s.CachedInfo().Config.AllowRollup)
}
