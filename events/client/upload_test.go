package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// takeParts plays the fleet that stores parts: answer says what it answers to the nth message of a part, "" being
// nothing.
func takeParts(t *testing.T, nc *nats.Conn, answer func(n int) string) (parts func() map[string]string) {
	var mu sync.Mutex
	came, stored := map[string]int{}, map[string]string{}
	_, err := nc.Subscribe("pinwheel.body.*.*.*", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		came[m.Subject]++
		text := answer(came[m.Subject])
		if strings.Contains(text, `"seq":1`) {
			stored[m.Subject] = string(m.Data)
		}
		if text != "" {
			_ = m.Respond([]byte(text))
		}
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return stored
	}
}

const (
	storedPart = `{"stream":"PINWHEEL_BODIES","seq":1}`
	laterPart  = `{"error":{"code":503,"err_code":0,"description":"the part was not stored"},"stream":"PINWHEEL_BODIES","seq":0}`
	fullStream = `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"PINWHEEL_BODIES","seq":0}`
)

// Parts that could not be stored at the moment are sent again, and the event names all of them.
func TestPartsAreSentAgain(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	parts := takeParts(t, nc, func(n int) string {
		if n < 3 {
			return laterPart
		}
		return storedPart
	})
	got := make(chan *events.Event, 1)
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		got <- e
		return &events.Reply{Status: 200}
	}, nc)
	body := strings.Repeat("0123456789", 200_000)
	_, err := newClient(t, nc).Call(within(t, patience), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "w",
		BodyFrom: strings.NewReader(body)})
	require.NoError(t, err)
	e := <-got
	require.Equal(t, 4, e.Parts.N)
	all := ""
	for i := range e.Parts.N {
		all += parts()[events.Subjects(events.DefaultPrefix).BodyPart("acme", e.Parts.ID, i)]
	}
	require.True(t, body == all)
}

// A BodyFrom without bytes is an empty body: nothing is stored, and nothing is to be read. It is a POST all the same.
func TestEmptyBodyFrom(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	parts := takeParts(t, nc, func(int) string { return storedPart })
	got := make(chan *events.Event, 1)
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		got <- e
		return &events.Reply{Status: 200}
	}, nc)
	c := newClient(t, nc)
	call := func(method string, body io.Reader) *events.Event {
		_, err := c.Call(within(t, patience), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "w", Method: method,
			BodyFrom: body})
		require.NoError(t, err)
		return <-got
	}
	for _, empty := range []io.Reader{bytes.NewReader(nil), strings.NewReader(""),
		iotest.DataErrReader(strings.NewReader("")), http.NoBody} {
		e := call("", empty)
		require.Nil(t, e.Parts)
		require.Empty(t, e.Body)
		require.Equal(t, "POST", e.Method)
	}
	require.Equal(t, "PUT", call("PUT", http.NoBody).Method)
	require.Empty(t, parts())
	// One whose last part is full has no empty one behind it.
	e := call("", strings.NewReader(strings.Repeat("x", 1<<20)))
	require.Equal(t, 2, e.Parts.N)
	require.Len(t, parts(), 2)
	e = call("", iotest.OneByteReader(strings.NewReader("x")))
	require.Equal(t, 1, e.Parts.N)
}

func TestPartsThatAreNotStored(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c := newClient(t, nc)
	upload := func(ctx context.Context, body io.Reader) error {
		_, err := c.Call(ctx, client.Request{Kind: events.Fetch, Owner: "acme", Worker: "w", BodyFrom: body})
		return err
	}
	long := func() io.Reader { return strings.NewReader(strings.Repeat("x", 9<<20)) }
	require.ErrorIs(t, upload(within(t, patience), long()), client.ErrNoStream)
	text := make(chan string, 1) // the answer from now on
	text <- fullStream
	takeParts(t, nc, func(int) string {
		now := <-text
		text <- now
		return now
	})
	var refused *jetstream.APIError
	require.ErrorAs(t, upload(within(t, patience), long()), &refused)
	require.Equal(t, "maximum bytes exceeded", refused.Description)
	broken := errors.New("broken")
	require.ErrorIs(t, upload(within(t, patience), io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))),
		broken)
	<-text
	text <- "" // no answer
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- upload(ctx, long()) }()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
}

// A body that belongs to no event is stored in parts for its owner.
func TestStoreABody(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	parts := takeParts(t, nc, func(int) string { return storedPart })
	c := newClient(t, nc)
	b, err := c.Store(within(t, patience), "acme", strings.NewReader(strings.Repeat("x", 700<<10)))
	require.NoError(t, err)
	require.Equal(t, 2, b.Parts)
	require.Len(t, parts()["pinwheel.body.acme."+b.ID+".0"], 512<<10)
	require.Len(t, parts()["pinwheel.body.acme."+b.ID+".1"], 188<<10)
	_, err = c.Store(within(t, patience), "a.b", strings.NewReader("x"))
	require.ErrorIs(t, err, client.ErrMalformed)
	b, err = c.Store(within(t, patience), "acme", strings.NewReader(""))
	require.NoError(t, err)
	require.Zero(t, b.Parts)
}
