package cell

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/calls"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// BeChild runs a cell and ends, if the process was started for that. main calls it first, and so does the TestMain of
// each package whose tests run this binary as the pinwheel command.
func BeChild() {
	in, is, err := spawn.AsCell()
	if !is {
		return
	}
	if err == nil {
		err = Run(in)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0) // V8 may still have a thread
}

// Bounds of what waits between a cell and its broker.
const (
	mostFrame  = 256 << 20 // bytes: a worker's code and source map, an event
	mostUnread = 256 << 20 // bytes that the broker has not read
)

// Cell is a pool of threads whose attempts come from a broker. It is the pool's isolates.Source and isolates.Host.
type Cell struct {
	*calls.Client
	conn *wire.Conn
	from *spawn.Inherited
	pool *isolates.Pool

	given    given
	attempts attempts
	streams  streams
	sockets  sockets
	waiting  []waiting // by thread

	over     chan struct{} // closed when the cell ends
	watching sync.WaitGroup
}

// gcPercent is how much garbage Go collects at once. Its heap is small here: with Go's own 100 it would collect often,
// and that costs an event a third of its CPU time.
const gcPercent = 400

// goBytes is the size of Go's heap beyond which it collects as often as it must. The memory of a cell has a bound, of
// which package spawn leaves more than that to Go.
const goBytes = 1 << 30

// Run runs a cell until its broker ends it, or has gone.
func Run(in *spawn.Inherited) error {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(goBytes)
	events, ok := in.Events.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a cell has inherited a connection of the type %T", in.Events)
	}
	c := &Cell{
		conn: wire.NewConn(events, mostFrame, mostUnread), from: in,
		given: newGiven(), over: make(chan struct{}),
	}
	err := c.conn.Receive(c.take, c.conn.Flush)
	close(c.over)
	c.watching.Wait()
	if c.pool != nil {
		c.pool.Close()
		c.Client.Close()
	}
	c.conn.Flush()
	c.conn.Close()
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// callsWithin is how long the broker may take to answer the first call, also on a busy machine.
const callsWithin = time.Minute

// errEnd says that the broker ends the cell.
var errEnd = errors.New("the broker ends the cell")

// open opens the pool, and says that attempts may come.
func (c *Cell) open(of wire.Pool) error {
	if of.Version != wire.Version {
		return fmt.Errorf("the broker has version %d of the protocol, and the cell %d", of.Version, wire.Version)
	}
	c.waiting = make([]waiting, of.Threads+of.Background)
	ctx, cancel := context.WithTimeout(context.Background(), callsWithin)
	defer cancel()
	var err error
	if c.Client, err = calls.NewClient(ctx, c.from.Calls, number); err != nil {
		return err
	}
	if c.pool, err = isolates.New(c.config(of), c, c); err != nil {
		return err
	}
	c.conn.Begin(wire.Ready).Uint(wire.Version) // before the threads ask for attempts
	c.conn.End()
	if err := c.pool.Open(); err != nil {
		return err
	}
	c.watching.Go(c.watch)
	return nil
}

// healthEvery is how often a cell looks whether V8 has lost too many of its threads.
const healthEvery = time.Second

// watch tells the broker once when the cell should be replaced.
func (c *Cell) watch() {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-tick.C:
		}
		if err := c.pool.Healthy(); err != nil {
			c.conn.Begin(wire.Unhealthy).Text(err.Error())
			c.conn.End()
			c.conn.Flush()
			return
		}
	}
}

// config is that of the pool.
func (c *Cell) config(of wire.Pool) isolates.Config {
	cfg := isolates.Config{Pool: of.Pool}
	cfg.Secrets, cfg.Files, cfg.Services = c.given.Secrets, c.Client, c.Client.Services()
	cfg.Dial, cfg.Lookup, cfg.Note = c.Client.Dial, c.Client.Lookup, c.from.Note
	if of.Authorities != nil {
		cfg.RootCAs = x509.NewCertPool()
		cfg.RootCAs.AppendCertsFromPEM(of.Authorities)
	}
	return cfg
}
