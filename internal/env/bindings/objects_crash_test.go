package bindings

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// writerURL makes the test binary a process that puts objects until it is killed.
const writerURL = "PINWHEEL_TEST_OBJECT_WRITER"

func TestMain(m *testing.M) {
	natstest.BeServer()
	if url := os.Getenv(writerURL); url != "" {
		fmt.Fprintln(os.Stderr, write(url))
		os.Exit(1)
	}
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

// write replaces four objects again and again. Each byte of a version is the same.
func write(url string) error {
	nc, err := natstest.Dial(url)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	o := newObjects(backend{nc, js, Config{Replicas: 1, Log: zerolog.Nop()},
		func(string) workers.Policy { return workers.Policy{} }, nil}, &lists{})
	for i := 0; ; i++ {
		_, err := o.put(context.Background(), &lifecycle.Call{
			Owner: "acme", Binding: workers.Binding{Kind: workers.BindingObjects, Value: "files"},
			Texts: putting(fmt.Sprint("k", i%4), always),
			Body:  bytes.Repeat([]byte{byte(i)}, 600_000), Wrote: &atomic.Bool{}, Hold: free,
		})
		if err != nil {
			return err
		}
	}
}

// A process that is killed while it puts leaves each object whole, and what it leaves besides a sweep finds.
func TestKilledWhilePutting(t *testing.T) {
	t.Parallel()
	server := natstest.StartAlone(t, t.TempDir(), 0)
	nc, err := natstest.Dial(server.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	p := open(t, nc)
	p.putObject("acme", "large", large(5<<20)) // so that the stream refuses no message of the others
	const messages = 6                         // of a put: five chunks, and what the object is
	orphans := 0
	for round := range 2 * messages {
		sub, err := nc.SubscribeSync("$O." + ObjectsBucket("acme") + ".>")
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), writerURL+"="+server.URL()), os.Stderr
		require.NoError(t, cmd.Start())
		for range 4*messages + round { // each step of a put, in turn, is the last
			_, err := sub.NextMsg(time.Minute)
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		require.NoError(t, sub.Unsubscribe())
		for i := range 4 {
			data := p.object("acme", fmt.Sprint("k", i), "")
			require.Equal(t, bytes.Repeat(data[:1], 600_000), data)
		}
		chunks, named := p.versions("acme")
		require.Subset(t, chunks, named)
		orphans += len(chunks) - len(named)
		b, err := p.objects.buckets.of(t.Context(), "acme")
		require.NoError(t, err)
		p.objects.sweep(t.Context(), b, "acme", time.Now().Add(sweepAge+time.Duration(round+1)*sweepEvery))
		chunks, named = p.versions("acme")
		require.Equal(t, named, chunks)
	}
	require.Positive(t, orphans, "no process was killed within a put")
}

// With several copies of the stream, a run reads what it wrote, and conditions hold.
func TestObjectsOfACluster(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t, 3)
	call := func(o *objects, m method, wrote *atomic.Bool, body []byte, texts ...string) lifecycle.Answer {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, err := m(ctx, &lifecycle.Call{Owner: "acme",
			Binding: workers.Binding{Kind: workers.BindingObjects, Value: "files"},
			Texts:   texts, Body: body, Wrote: wrote, Hold: free})
		require.NoError(t, err)
		return a
	}
	var processes []*objects
	for i := range 3 {
		nc := c.Connect(i)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		processes = append(processes,
			newObjects(backend{nc, js, Config{Replicas: 3, Log: zerolog.Nop()},
				func(string) workers.Policy { return workers.Policy{} }, nil}, &lists{}))
	}
	for i := range 9 {
		o, wrote := processes[i%3], &atomic.Bool{}
		data := bytes.Repeat([]byte{byte(i)}, 300_000)
		call(o, o.put, wrote, data, putting("k", always)...)
		require.True(t, wrote.Load())
		require.Equal(t, data, call(o, o.get, wrote, nil, append([]string{"k", ""}, always...)...).Body)
		require.Empty(t, call(o, o.put, &atomic.Bool{}, data, putting("k", []string{"", "*", "", "", ""})...).Texts,
			"it is there")
		call(o, o.remove, wrote, nil, "k")
		require.Empty(t, call(o, o.head, wrote, nil, "k").Texts)
	}
}
