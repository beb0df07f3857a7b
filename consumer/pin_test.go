package consumer_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Events that come one by one cost nats-server no file each, also when the first of its files is full: the pin is in
// the last one.
func TestPinFollowsWhatIsStored(t *testing.T) {
	t.Parallel()
	srv, dir := serverIn(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	for range 2 { // processes: only one of them moves it
		start(t, natstest.Connect(t, srv), testConfig(), &dispatcher{forget: true, handle: echo})
	}
	// left by a process that died while it moved it
	_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Anchor()})
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), events.StreamEvents)
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
		eventuallyStored(t, js, events.StreamEvents, 0)
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subjects.Anchor()))
		require.NoError(t, err)
		files := files(t, dir, events.StreamEvents)
		pins := info.State.Subjects[subjects.Anchor()]
		t.Logf("%d events stored, %d pins, the first message at %d, %d files", info.State.LastSeq, pins, info.State.FirstSeq, len(files))
		if pins == 1 && info.State.FirstSeq > info.Config.FirstSeq+200 && len(files) < 10 {
			return
		}
		require.Less(t, time.Since(begin), patience)
	}
}

// Nor do parked events, while one of another owner stays.
func TestPinOfTheParkedFollows(t *testing.T) {
	t.Parallel()
	srv, dir := serverIn(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	start(t, natstest.Connect(t, srv), testConfig(),
		&dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			if e.Parked {
				s, _ := ack(e)
				return s, e.Owner != "stays"
			}
			return park(e)
		}})
	publish(t, nc, events.Task, "stays", nil, "x")
	eventuallyStored(t, js, events.StreamParked, 1)

	come := func(n int, body string) {
		for range n {
			publish(t, nc, events.Task, "acme", nil, body)
		}
		eventuallyStored(t, js, events.StreamEvents, 0)
		eventuallyStored(t, js, events.StreamParked, 1)
	}
	come(12, strings.Repeat("x", 900<<10)) // more than nats-server has in a file
	s, err := js.Stream(t.Context(), events.StreamParked)
	require.NoError(t, err)
	for begin := time.Now(); ; come(10, "small") {
		pin, err := s.GetLastMsgForSubject(t.Context(), subjects.ParkedAnchor())
		require.NoError(t, err)
		if pin.Sequence > s.CachedInfo().Config.FirstSeq+64 {
			break
		}
		require.Less(t, time.Since(begin), patience)
	}
	before := len(files(t, dir, events.StreamParked))
	for range 10 {
		come(1, "small")
	}
	after := len(files(t, dir, events.StreamParked))
	t.Logf("%d files, and %d after ten more that came alone", before, after)
	require.LessOrEqual(t, after, before+1)
}

// serverIn starts a server whose directory is known.
func serverIn(t *testing.T) (srv *natsd.Server, dir string) {
	t.Helper()
	dir = natstest.StoreDir(t)
	srv, err := natsd.Open(natsd.Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	return srv, dir
}

// files are those in which a server in dir keeps the messages of a stream.
func files(t *testing.T, dir, stream string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs", "*.blk"))
	require.NoError(t, err)
	return all
}
