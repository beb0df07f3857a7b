package bindings

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// stall is a way from the server that may take no more than a number of bytes, until it is opened again.
type stall struct {
	left atomic.Int64
	open chan struct{}
}

type stalledConn struct {
	net.Conn
	*stall
}

func (s *stall) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return stalledConn{c, s}, err
}

func (c stalledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(-int64(n)) < 0 {
		<-c.open
	}
	return n, err
}

// A list is whole, or an error, also when the server is silent for long.
func TestListsAreWholeOrFail(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	way := &stall{open: make(chan struct{})}
	way.left.Store(1 << 40)
	nc, err := natstest.Dial(srv.URL(), nats.SetCustomDialer(way))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	p := open(t, nc)
	const keys = 1000
	p.put("acme", "first", "v")
	metadata := `{"long":"` + strings.Repeat("x", 900) + `"}`
	for i := range keys - 1 {
		m := &nats.Msg{Subject: fmt.Sprintf("$KV.%s.space.k%03d", KVBucket("acme"), i),
			Header: nats.Header{headerMetadata: {metadata}}}
		_, err := p.js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	require.Len(t, p.names("acme", "", 0), keys)

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() { close(way.open) })
	way.left.Store(keys * 900 / 2)
	a, err := p.Bindings.Call(ctx, &lifecycle.Call{
		Owner: "acme", Binding: workers.Binding{Kind: workers.BindingKV, Name: "KV", Value: "space"}, Method: "list",
		Texts: []string{"", "1000", ""},
		Wrote: &atomic.Bool{}, Hold: func(int) error { return nil },
	})
	require.Error(t, err, "%d of %d keys", len(a.Texts)/3, keys)
	way.left.Store(1 << 40)
	require.Len(t, p.names("acme", "", 0), keys)
}
