package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/pinwheel-run/pinwheel/loadtest/webclient"
	"golang.org/x/sys/unix"
)

const (
	// socketsOfOwner is how many WebSockets an owner has. 1000 are the most of a context, and each is one of the 1000
	// requests that an owner may have.
	socketsOfOwner = 500
	// dialers is how many WebSockets are opened at the same time.
	dialers = 32
	// spareFiles are files of this program, and of a fleet, beside the WebSockets.
	spareFiles = 500
)

// enoughFiles checks that this program and a fleet may each have n connections. Go raises the limit to what is allowed.
func enoughFiles(n int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if uint64(n+spareFiles) > limit.Max {
		return fmt.Errorf("--sockets %d: a process may open %d files here (ulimit -Hn), so there can be %d", n, limit.Max, max(0, int64(limit.Max)-spareFiles))
	}
	return nil
}

// idleSockets measures the memory for WebSockets that carry nothing, and checks that each still works afterwards.
func (r *runner) idleSockets(ctx context.Context, s *testbed, c report.Case, addr string) (*report.Round, error) {
	if err := touchOwners(ctx, c, addr); err != nil {
		return nil, err
	}
	rest := func() machine.Reading {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(c.Seconds * float64(time.Second))):
		}
		return s.meter.Read()
	}
	rest()
	before, _ := machine.Memory(s.meter.Groups[machine.GroupFleet])
	conns := make([]*websocket.Conn, c.Connections)
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	err := eachSocket(conns, func(i int) (err error) {
		conns[i], err = dialSocket(ctx, addr, i%c.Owners)
		return err
	})
	if err != nil {
		return nil, err
	}
	from := s.meter.Read()
	to := rest()
	after, peak := machine.Memory(s.meter.Groups[machine.GroupFleet])
	round := &report.Round{Metrics: map[string]float64{
		"KB/socket": float64(after-before) / 1000 / float64(len(conns)), "MB without": float64(before) / 1e6,
		"fleet MB": float64(after) / 1e6, "fleet peak MB": float64(peak) / 1e6,
		"fleet cores":   (to.Used[machine.GroupFleet] - from.Used[machine.GroupFleet]).Seconds() / to.At.Sub(from.At).Seconds(),
		"foreign cores": machine.Foreign(from, to),
	}}
	return round, eachSocket(conns, func(i int) error { return echoes(conns[i], i, r.o.patience) })
}

// touchOwners has each owner answer a request, so that all contexts are there.
func touchOwners(ctx context.Context, c report.Case, addr string) error {
	conn, err := webclient.Dial(ctx, addr, webExchange(c))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	for i := range c.Owners {
		if err := ask(conn, i, i); err != nil {
			return err
		}
	}
	return nil
}

// eachSocket calls f for each WebSocket, for several at the same time.
func eachSocket(conns []*websocket.Conn, f func(i int) error) error {
	errs := make([]error, dialers)
	var all sync.WaitGroup
	for k := range dialers {
		all.Go(func() {
			for i := k; i < len(conns) && errs[k] == nil; i += dialers {
				if err := f(i); err != nil {
					errs[k] = fmt.Errorf("WebSocket %d: %w", i, err)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func dialSocket(ctx context.Context, addr string, owner int) (*websocket.Conn, error) {
	d := websocket.Dialer{
		HandshakeTimeout: time.Minute, ReadBufferSize: 512, WriteBufferSize: 512,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		},
	}
	conn, resp, err := d.DialContext(ctx, "ws://"+hostOf(webParts[report.WebSockets][0].deployed(), owner)+"/",
		http.Header{})
	if resp != nil && err != nil {
		err = fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return conn, err
}

// echoes checks that a message comes back.
func echoes(conn *websocket.Conn, i int, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	sent := fmt.Sprintf("message %d", i)
	err := errors.Join(conn.SetWriteDeadline(deadline), conn.SetReadDeadline(deadline),
		conn.WriteMessage(websocket.TextMessage, []byte(sent)))
	if err != nil {
		return err
	}
	_, got, err := conn.ReadMessage()
	if err == nil && string(got) != sent {
		err = fmt.Errorf("%q came back, and %q was sent", got, sent)
	}
	return err
}
