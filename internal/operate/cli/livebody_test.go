package cli_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// A live body is processed while it arrives: each answer is there before the next part is sent.
func TestLiveBody(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { fetch(r) {
		const upper = new TransformStream({ transform(chunk, c) { c.enqueue(new TextEncoder().encode(new TextDecoder().decode(chunk).toUpperCase())) } });
		return new Response(r.body.pipeThrough(upper));
	} }`, `{"limits":{"wallMs":60000}}`)
	from, to := io.Pipe()
	type opened struct {
		body io.ReadCloser
		err  error
	}
	open := make(chan opened, 1)
	go func() {
		_, body, err := c.Open(t.Context(), client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream", BodyFrom: from,
			BodyLive: true})
		open <- opened{body, err}
	}()
	_, err := to.Write([]byte("one")) // the reply's head may wait for the first part of the body
	require.NoError(t, err)
	o := <-open
	require.NoError(t, o.err)
	defer func() { _ = o.body.Close() }()
	answer := make([]byte, 3)
	for _, word := range []string{"one", "two", "six", "ten"} {
		if word != "one" {
			_, err := to.Write([]byte(word))
			require.NoError(t, err)
		}
		_, err := io.ReadFull(o.body, answer)
		require.NoError(t, err)
		require.Equal(t, strings.ToUpper(word), string(answer))
	}
	require.NoError(t, to.Close())
	rest, err := io.ReadAll(o.body)
	require.NoError(t, err)
	require.Empty(t, rest)

	// The command sends its input as a live body.
	r := f.PinwheelWith(strings.Repeat("x", 2_000_000), "send", "fetch", "dev/stream", "--data-file", "-", "--stream")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, strings.Repeat("X", 2_000_000), r.Out)
	r = f.PinwheelWith("x", "send", "task", "dev/stream", "--data-file", "-", "--stream")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "--stream is for a fetch event")
}

// endless is a body that never ends.
type endless struct{ reads atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.reads.Add(1)
	return len(p), nil
}

// A sender is at most some parts ahead of the handler, and stops when the event has ended.
func TestLiveBodyWaitsForTheHandler(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { async fetch(r) {
		const reader = r.body.getReader();
		const want = Number(new URL(r.url).searchParams.get("bytes"));
		let n = 0;
		while (n < want) n += (await reader.read()).value.length;
		await scheduler.wait(300);
		return new Response(String(n));
	} }`, `{"limits":{"wallMs":60000,"cpuMs":10000}}`)
	for _, want := range []int{1, 20 << 20} {
		body := &endless{}
		reply, err := c.Call(t.Context(), client.Request{
			Kind: events.Fetch, Owner: "dev", Worker: "stream", URL: "/?bytes=" + strconv.Itoa(want), BodyFrom: body,
			BodyLive: true,
		})
		require.NoError(t, err)
		require.Equal(t, 200, reply.Status)
		taken := int64(want/(512<<10)) + 3 // the stream reads a part ahead
		require.LessOrEqual(t, body.reads.Load(), taken+16)
	}
}

// When its sender stops, or when parts do not arrive, the handler's stream has an error.
func TestLiveBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { async fetch(r) {
		try { return new Response(await r.text()) } catch (e) { return new Response(e.name + ": " + e.message, { status: 422 }) }
	} }`, `{"limits":{"wallMs":60000}}`)
	broken := errors.New("the disk is gone")
	_, err := c.Call(t.Context(), client.Request{
		Kind: events.Fetch, Owner: "dev", Worker: "stream", BodyFrom: io.MultiReader(strings.NewReader("a"), failing{broken}),
		BodyLive: true,
	})
	require.ErrorIs(t, err, broken)

	part := func(id, n, data string) string {
		answer, err := f.NC.Request("pinwheel.body.dev."+id+"."+n, []byte(data), 20*time.Second)
		require.NoError(t, err)
		return string(answer.Data)
	}
	call := func(id string) *nats.Msg {
		m := nats.NewMsg("pinwheel.call.fetch.dev.stream")
		m.Header = nats.Header{events.HeaderBodyID: {id}, events.HeaderBodyParts: {"*"}}
		m.Reply = nats.NewInbox()
		sub, err := f.NC.SubscribeSync(m.Reply)
		require.NoError(t, err)
		require.NoError(t, f.NC.Flush())
		require.NoError(t, f.NC.PublishMsg(m))
		for {
			answer, err := sub.NextMsg(20 * time.Second)
			require.NoError(t, err)
			if answer.Header.Get(events.HeaderAttempt) != "" {
				return answer
			}
			require.NotEmpty(t, answer.Header.Get(events.HeaderBodyRead))
		}
	}
	part("given-up", "0", "a")
	part("given-up", "end", "!no more paper")
	require.Equal(t, "TypeError: part 1 of body given-up: its sender gave it up: no more paper", string(call("given-up").Data))
	for i, n := range []string{"end", "2", "0", "1"} { // in an arbitrary order
		part("mixed", n, []string{"3", "c", "a", "b"}[i])
	}
	require.Equal(t, "abc", string(call("mixed").Data))
	part("none", "end", "0")
	require.Empty(t, string(call("none").Data))
	for _, bad := range []string{"", "x", "-1", "1048577", "1 "} {
		require.Contains(t, part("bad", "end", bad), "it is the number of parts, 0 to 1048576, or ! and why there are no more", "%q", bad)
	}
	require.Contains(t, part("bad", "End", "1"), "0 to 1048575, or end")
	late := nats.NewMsg("pinwheel.call.fetch.dev.stream")
	late.Header = nats.Header{events.HeaderBodyID: {"late"}, events.HeaderBodyParts: {"*"},
		events.HeaderDeliverAfter: {"1h"}}
	answer, err := f.NC.RequestMsg(late, 20*time.Second)
	require.NoError(t, err)
	require.Contains(t, answer.Header.Get(events.HeaderError), "for an event that runs at once")
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A call whose context ends stops sending, and the handler notices that no one waits.
func TestLiveBodyOfACallThatEnds(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { async fetch(r) { for await (const _ of r.body); return new Response() } }`, `{"limits":{"wallMs":60000}}`)
	from, to := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream", BodyFrom: from,
			BodyLive: true})
		done <- err
	}()
	_, err := to.Write([]byte("x"))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
