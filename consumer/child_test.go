package consumer_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const (
	childDir  = "PINWHEEL_TEST_NATSD_DIR"
	childPort = "PINWHEEL_TEST_NATSD_PORT"
)

// TestMain lets the test binary be a NATS server or a Consumer, for tests that kill one.
func TestMain(m *testing.M) {
	natstest.BeServer()
	if url := os.Getenv(childReplay); url != "" {
		beReplay(url)
		return
	}
	if url := os.Getenv(childURL); url != "" {
		if err := beConsumer(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir := os.Getenv(childDir)
	if dir == "" {
		parallel.AtOnce(parallel.Waits)
		os.Exit(m.Run())
	}
	port, _ := strconv.Atoi(os.Getenv(childPort))
	srv, err := natsd.Open(natsd.Config{StoreDir: dir, Port: port})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(srv.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // ends with the parent
}

// child is a NATS server in a process of its own.
type child struct {
	url string
	cmd *exec.Cmd
}

func startChild(t testing.TB, dir string, port int) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childPort+"="+strconv.Itoa(port))
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	c := &child{url[:len(url)-1], cmd}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func dial(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := natstest.Dial(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// When the server is killed, confirmed acks stay, and published events are not lost.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	dir := natstest.StoreDir(t)
	srv := startChild(t, dir, -1)
	var port int
	_, err := fmt.Sscanf(srv.url, "nats://127.0.0.1:%d", &port)
	require.NoError(t, err)
	nc, pub := dial(t, srv.url), dial(t, srv.url)
	var mu sync.Mutex
	ran := map[string]int{}
	half := make(chan struct{})
	const n = 6000
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		mu.Lock()
		defer mu.Unlock()
		ran[string(e.Body)]++
		if len(ran) == n/2 {
			close(half)
		}
		return ack(e)
	}}
	cfg := testConfig()
	cfg.AckWait = 10 * time.Second
	js := jetStream(t, pub)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	for i := range n {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i%40), "w"),
			Data: []byte(strconv.Itoa(i))}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	f := start(t, nc, cfg, d)
	<-half
	srv.kill()
	startChild(t, dir, port)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(ran) == n }, patience, time.Millisecond)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for id, times := range ran {
		if again += times - 1; times > 1 {
			t.Log("ran again:", id)
		}
	}
	for _, e := range d.events() {
		if ran[string(e.Body)] > 1 {
			t.Logf("%s %+v attempt %d stored %v", e.Body, e.Origin, e.Attempt, e.Stored)
		}
	}
	require.Zero(t, again, "events that ran again although their acks were confirmed")
}
