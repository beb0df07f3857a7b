package consumer_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/natsd"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// Events that come one by one cost nats-server no file each, also when the first of its files is full: the pin is in the last one.
func TestPinFollowsWhatIsStored(t *testing.T) {
	dir := t.TempDir()
	srv, err := natsd.Open(natsd.Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	for range 2 { // processes: only one of them moves it
		start(t, natstest.Connect(t, srv), testConfig(), &dispatcher{forget: true, handle: echo})
	}
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Pin()}) // left by a process that died while it moved it
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), consumer.StreamEvents)
	require.NoError(t, err)

	big := strings.Repeat("x", 900<<10)
	to, replies := inbox(t, nc)
	run := func(body string) {
		publish(t, nc, events.Task, "acme", nats.Header{"Reply-To": {to}}, body)
		_, err := replies.NextMsg(patience)
		require.NoError(t, err)
	}
	for range 12 { // more than nats-server has in a file
		run(big)
	}
	for begin := time.Now(); ; {
		for range 200 {
			run("small")
		}
		eventuallyStored(t, js, consumer.StreamEvents, 0)
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subjects.Pin()))
		require.NoError(t, err)
		files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", consumer.StreamEvents, "msgs", "*.blk"))
		require.NoError(t, err)
		pins := info.State.Subjects[subjects.Pin()]
		t.Logf("%d events stored, %d pins, the first message at %d, %d files", info.State.LastSeq, pins, info.State.FirstSeq, len(files))
		if pins == 1 && info.State.FirstSeq > 200 && len(files) < 10 {
			return
		}
		require.Less(t, time.Since(begin), patience)
	}
}
