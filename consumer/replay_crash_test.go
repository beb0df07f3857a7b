package consumer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// childReplay is where a child process finds the NATS whose dead letters it replays, until it dies at the third.
const childReplay = "PINWHEEL_TEST_REPLAY_URL"

func beReplay(url string) {
	nc, err := natstest.Dial(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	js, _ := jetstream.New(nc)
	n := 0
	_, err = deadletter.NewStore(js, subjects).ReplayAll(context.Background(), deadletter.Selection{},
		deadletter.ReplayOptions{Stored: func() {
			if n++; n == 3 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}}, nil)
	fmt.Fprintln(os.Stderr, "it was to die:", err)
}

// A replay of many letters is killed when the event of one is stored again and its letter still exists. Whichever
// process continues, and whether the event has run by then or not, each event runs once: JetStream's deduplication has
// no part in it, since the message ids differ.
func TestKilledReplayGoesOn(t *testing.T) {
	t.Parallel()
	for _, ran := range []bool{true, false} {
		t.Run(fmt.Sprintf("ran=%t", ran), func(t *testing.T) {
			t.Parallel()
			killedReplayGoesOn(t, ran)
		})
	}
}

func killedReplayGoesOn(t *testing.T, ran bool) {
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, crashConfig(), nc.MaxPayload()))
	for i := range 5 {
		lay(t, js, &events.DeadLetter{StreamSeq: uint64(i + 1), EventID: fmt.Sprint("e", i)})
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childReplay+"="+srv.URL())
	child.Stderr = os.Stderr
	require.ErrorContains(t, child.Run(), "killed")
	dl := deadletter.NewStore(js, subjects)
	require.Len(t, letters(t, dl, deadletter.Filter{}), 3)
	require.Equal(t, 3, stored(t, js, events.StreamEvents))

	d := &dispatcher{handle: ack}
	if ran {
		start(t, natstest.Connect(t, srv), crashConfig(), d)
		eventuallyStored(t, js, events.StreamEvents, 0)
	}
	counts, err := dl.ReplayAll(t.Context(), deadletter.Selection{}, deadletter.ReplayOptions{}, nil)
	require.NoError(t, err)
	require.Equal(t, 3, counts.Done)
	if !ran {
		start(t, natstest.Connect(t, srv), crashConfig(), d)
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Empty(t, letters(t, dl, deadletter.Filter{}))
	ids := map[string]int{}
	for _, e := range d.events() {
		ids[e.ID]++
	}
	require.Equal(t, map[string]int{"e0": 1, "e1": 1, "e2": 1, "e3": 1, "e4": 1}, ids)
}
