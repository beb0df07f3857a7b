package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
)

// renewTails is how often tails are asked for again. The fleet forgets one that is not.
const renewTails = 5 * time.Second

// tails are tails of the fleet's owners in turn, as of people who watch: each wants all log lines and ended events of
// an owner. The fleet takes as many as it serves at once, and refuses the others.
type tails struct {
	nc      *nats.Conn
	lines   atomic.Int64 // that came
	taken   atomic.Int64 // answers of processes that serve one, at the first request
	end     context.CancelFunc
	running sync.WaitGroup
}

// openTails asks for so many tails, until close.
func openTails(url string, n, owners int) (*tails, error) {
	nc, err := nats.Connect(url, machine.Patient)
	if err != nil {
		return nil, err
	}
	t := &tails{nc: nc}
	prefix := string(events.DefaultPrefix)
	if _, err = nc.Subscribe(prefix+".feed.>", func(*nats.Msg) { t.lines.Add(1) }); err != nil {
		nc.Close()
		return nil, err
	}
	first := nc.NewInbox()
	if _, err = nc.Subscribe(first, func(m *nats.Msg) {
		if m.Header.Get("Nats-Service-Error-Code") == "" && len(m.Data) > 0 {
			t.taken.Add(1)
		}
	}); err != nil {
		nc.Close()
		return nil, err
	}
	ask := func(reply string) error {
		for i := range n {
			body, err := json.Marshal(map[string]string{"owner": ownerName(i % owners),
				"id": fmt.Sprintf("tail-of-loadtest-%06d", i)})
			if err != nil {
				return err
			}
			if err := nc.PublishRequest(prefix+".control.tail", reply, body); err != nil {
				return err
			}
		}
		return nc.FlushTimeout(renewTails)
	}
	if err := ask(first); err != nil {
		nc.Close()
		return nil, err
	}
	var ctx context.Context
	ctx, t.end = context.WithCancel(context.Background())
	t.running.Go(func() {
		tick := time.NewTicker(renewTails)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = ask(nc.NewInbox()) // the connection is away: the next time
			}
		}
	})
	return t, nil
}

// close ends the tails, and returns how many the fleet has taken, and how many lines came.
func (t *tails) close() (taken, lines int64) {
	t.end()
	t.running.Wait()
	t.nc.Close()
	return t.taken.Load(), t.lines.Load()
}
