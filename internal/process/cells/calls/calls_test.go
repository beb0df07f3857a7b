package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// A call of a binding reaches the broker with the owner and the binding that the broker knows, and its answer comes
// back. The run is charged for what the broker charged before the answer is read.
func TestCall(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	from := c.start(direct(c.give(greeter()), nil))
	long := bytes.Repeat([]byte("x"), 1<<20)
	c.call = func(_ context.Context, call *lifecycle.Call) (lifecycle.Answer, error) {
		require.Equal(t, "acme", call.Owner)
		require.Equal(t, workers.Binding{Kind: workers.BindingKV, Name: "KV", Value: "space"}, call.Binding)
		require.Equal(t, "e", call.From.Event.ID)
		wrote := call.Wrote.Load()
		call.Wrote.Store(true)
		if err := call.Hold(len(long)); err != nil {
			return lifecycle.Answer{}, err
		}
		texts := []string{call.Method, fmt.Sprint(call.Texts, wrote), string(call.Body)}
		return lifecycle.Answer{Texts: texts, Body: long}, nil
	}
	held := 0
	call := kv(from, "get", []byte("body"), "a", "\xff", "")
	call.Hold = func(n int) error { held += n; return nil }
	answer, err := c.client.Call(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, []string{"get", "[a \xff ] false", "body"}, answer.Texts)
	require.Equal(t, long, answer.Body)
	require.Equal(t, len(long), held)
	require.True(t, call.Wrote.Load(), "it is told whether a call of the run has written")
	answer, err = c.client.Call(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "[a \xff ] true", answer.Texts[1])

	full := errors.New("the run has no room")
	call.Hold = func(int) error { return full }
	_, err = c.client.Call(t.Context(), call)
	require.ErrorIs(t, err, full)

	between := &lifecycle.Attempt{Worker: from.Worker}
	c.call = func(_ context.Context, call *lifecycle.Call) (lifecycle.Answer, error) {
		require.Nil(t, call.From.Event)
		return lifecycle.Answer{Texts: []string{call.Owner}}, nil
	}
	answer, err = c.client.Call(t.Context(), kv(between, "get", nil, "a"))
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, answer.Texts)
	require.Empty(t, c.lies)
}

// Errors keep their text, and what kind of error they are.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	from := c.start(direct(c.give(greeter()), nil))
	for _, want := range []error{
		errors.New("413 Value length of 9 exceeds limit of 8."), lifecycle.Thrown("TypeError: it\nfailed \xff"), io.EOF,
		fmt.Errorf("0 of 5 tasks are known to be stored: %w", context.Canceled),
		fmt.Errorf("504: %w", context.DeadlineExceeded), events.Fail(events.ReasonTimeout, "50ms"),
	} {
		c.call = func(context.Context, *lifecycle.Call) (lifecycle.Answer, error) { return lifecycle.Answer{}, want }
		_, err := c.client.Call(t.Context(), kv(from, "get", nil, "a"))
		require.EqualError(t, err, want.Error())
		for _, kind := range []error{io.EOF, context.Canceled, context.DeadlineExceeded} {
			require.Equal(t, errors.Is(want, kind), errors.Is(err, kind), want)
		}
		_, isThrown := errors.AsType[lifecycle.Thrown](want)
		_, is := errors.AsType[lifecycle.Thrown](err)
		require.Equal(t, isThrown, is)
		require.Equal(t, want.Error(), decodeTrailer(encodeTrailer(want)).Error())
	}
	require.Empty(t, c.lies, "answers are no lies")
}

// A call whose run ends is cancelled in the broker.
func TestCallIsCancelled(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	from := c.start(direct(c.give(greeter()), nil))
	began, ended := make(chan struct{}), make(chan error, 1)
	c.call = func(ctx context.Context, _ *lifecycle.Call) (lifecycle.Answer, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return lifecycle.Answer{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := c.client.Call(ctx, kv(from, "get", nil, "a"))
	require.ErrorIs(t, err, context.Canceled)
	require.Error(t, <-ended)
	require.Empty(t, c.lies)
}

// Tasks arrive as they were sent.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	c.enqueue = func(_ context.Context, owner, worker string, tasks []bindings.Message) error {
		c.sent = append(c.sent, tasks...)
		if worker == "full" {
			return errors.New("the task was not stored: " + owner + " has too many")
		}
		return nil
	}
	one := []bindings.Message{{Body: bytes.Repeat([]byte("x"), 1<<20), ContentType: "a/b", Headers: []string{"N", "v"}}}
	two := []bindings.Message{{Body: []byte("1")}, {Body: []byte{}},
		{Body: []byte("3"), Headers: []string{"A", "", "B", "2"}}}
	require.NoError(t, c.client.Enqueue(t.Context(), "acme", "jobs", one))
	require.Equal(t, one, c.sent)
	c.sent = nil
	require.NoError(t, c.client.Enqueue(t.Context(), "acme", "jobs", two))
	require.Equal(t, two, c.sent)
	require.EqualError(t, c.client.Enqueue(t.Context(), "acme", "full", two), "the task was not stored: acme has too many")
	long := []bindings.Message{{Body: make([]byte, maxBody+1)}}
	require.ErrorContains(t, c.client.Enqueue(t.Context(), "acme", "jobs", long),
		fmt.Sprintf("at most %d", maxHead), "the cell refuses what the broker would call a lie")
	require.Empty(t, c.lies)
}

// Parts of a body come one at a time, and each with its error.
func TestParts(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	w := c.give(greeter())
	waiting, freed := make(chan struct{}), 0
	parts := &events.Parts{ID: "e", Live: true, Free: func([]byte) { freed++ }}
	parts.Read = func(ctx context.Context, i int) ([]byte, error) {
		switch i {
		case 0:
			return bytes.Repeat([]byte("p"), 100_000), nil
		case 1:
			return []byte{}, nil
		case 2:
			return nil, io.EOF
		case 3:
			return nil, events.ErrGivenUp
		}
		close(waiting)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	id := c.number(c.start(direct(w, parts)))
	read := c.client.Part(id)
	for i, size := range []int{100_000, 0} {
		part, err := read(t.Context(), i)
		require.NoError(t, err)
		require.Len(t, part, size)
	}
	_, err := read(t.Context(), 2)
	require.ErrorIs(t, err, io.EOF)
	_, err = read(t.Context(), 3)
	require.EqualError(t, err, events.ErrGivenUp.Error())
	require.Equal(t, 2, freed)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-waiting; cancel() }()
	_, err = read(ctx, 4)
	require.ErrorIs(t, err, context.Canceled)
	c.end(id)
	_, err = read(t.Context(), 0)
	require.EqualError(t, err, errOver.Error(), "a late call is no lie")
	require.Empty(t, c.lies)
	require.Empty(t, c.server.running.attempts)
}

// Answers that the cell does not read hold up only themselves, as do arguments that the broker does not take.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	from := c.start(direct(c.give(greeter()), nil))
	stuck, sizes := make(chan struct{}), atomic.Int64{}
	const size = 1 << 20
	sizes.Store(size)
	c.call = func(ctx context.Context, call *lifecycle.Call) (lifecycle.Answer, error) {
		if call.Method == "stuck" {
			<-stuck
		}
		n := int(sizes.Load())
		if err := call.Hold(n); err != nil {
			return lifecycle.Answer{}, err
		}
		return lifecycle.Answer{Body: make([]byte, n)}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range 40 { // their answers are not read: Hold does not return before
		go func() {
			call := kv(from, "get", nil, "a")
			call.Hold = func(int) error { <-ctx.Done(); return ctx.Err() }
			_, _ = c.client.Call(ctx, call)
			done <- struct{}{}
		}()
	}
	for range 20 {
		go func() {
			_, _ = c.client.Call(ctx, kv(from, "stuck", make([]byte, size), "a"))
			done <- struct{}{}
		}()
	}
	require.Eventually(t, func() bool { return c.calling.Load() == 20 }, patience, time.Millisecond)
	answer, err := c.client.Call(t.Context(), kv(from, "get", make([]byte, size), "a"))
	require.NoError(t, err)
	require.Len(t, answer.Body, size)
	cancel()
	close(stuck)
	for range 60 {
		<-done
	}
	call := kv(from, "get", nil, strings.Repeat("k", 300<<10))
	sizes.Store(answerBytes + 1)
	_, err = c.client.Call(t.Context(), call)
	require.ErrorContains(t, err, fmt.Sprintf("may have %d under way", answerBytes))
	require.Empty(t, c.lies)
}
