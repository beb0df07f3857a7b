package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/pinwheel-run/pinwheel/loadtest/webclient"
)

// webLoad sends requests on connections that are kept. Owners are asked in turn.
type webLoad struct {
	conns    []*webConn
	owners   int
	patience time.Duration
	first    int // number of the next request
}

type webConn struct {
	*webclient.Conn
	due chan time.Time // open loop: of the request that is under way
}

func openWebLoad(ctx context.Context, c report.Case, addr string, patience time.Duration) (*webLoad, error) {
	l := &webLoad{owners: c.Owners, patience: patience}
	for range c.Connections {
		conn, err := webclient.Dial(ctx, addr, webExchange(c))
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, &webConn{conn, make(chan time.Time, 1)})
	}
	return l, nil
}

func (l *webLoad) close() {
	for _, c := range l.conns {
		c.Close()
	}
}

// until has all calls of connections fail at that time.
func (l *webLoad) until(t time.Time) error {
	var errs []error
	for _, c := range l.conns {
		errs = append(errs, c.SetDeadline(t))
	}
	return errors.Join(errs...)
}

// ask sends a request and checks its answer.
func ask(c *webclient.Conn, number, owner int) error {
	c.Prepare(number, owner)
	if c.Echoes() {
		if err := c.Echo(); err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
		return nil
	}
	if err := c.Send(); err != nil {
		return fmt.Errorf("request %d, of owner %d: %w", number, owner, err)
	}
	if err := c.Receive(); err != nil {
		return fmt.Errorf("request %d, of owner %d: %w", number, owner, err)
	}
	return nil
}

// slowest is the time that a request may take on average, when there is a number of them to be sent.
const slowest = 50 * time.Millisecond

// closed sends requests for that time, and at least so many. A connection sends its next one when it has the answer to
// the last one. It returns how many were answered.
func (l *webLoad) closed(length time.Duration, least int, latency *report.Recorder) (int, error) {
	begin := time.Now()
	end := begin.Add(length)
	if err := l.until(end.Add(l.patience + time.Duration(least)*slowest)); err != nil {
		return 0, err
	}
	var (
		all            sync.WaitGroup
		failed         atomic.Bool
		mu             sync.Mutex
		firstErr       error
		answered, last int
	)
	for k, c := range l.conns {
		all.Go(func() {
			own, n, at, err := report.NewRecorder(), l.first+k, begin, error(nil)
			for ; !failed.Load() && (at.Before(end) || n < l.first+least); n += len(l.conns) {
				if err = ask(c.Conn, n, n%l.owners); err != nil {
					break
				}
				now := time.Now()
				own.Record(now.Sub(at))
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil && !failed.Swap(true) {
				firstErr = err
			}
			latency.Hist.Merge(own.Hist)
			answered, last = answered+int(own.Hist.TotalCount()), max(last, n)
		})
	}
	all.Wait()
	l.first = last + len(l.conns)
	return answered, firstErr
}

// webLoop is an open loop of requests. A latency counts from when its request was to be sent, also when that had to
// wait for a free connection.
type webLoop struct {
	*webLoad
	idle    chan *webConn
	failed  chan error
	over    atomic.Bool
	readers sync.WaitGroup

	mu      sync.Mutex
	latency *report.Recorder
}

// open sends n requests at a rate.
func (l *webLoad) open(ctx context.Context, rate, n int, latency, lag *report.Recorder) error {
	interval := time.Second / time.Duration(rate)
	if err := l.until(time.Now().Add(time.Duration(n)*interval + l.patience)); err != nil {
		return err
	}
	o := &webLoop{webLoad: l, idle: make(chan *webConn, len(l.conns)), failed: make(chan error, len(l.conns)),
		latency: latency}
	for _, c := range l.conns {
		o.idle <- c
		o.readers.Go(func() { o.read(c) })
	}
	start := time.Now().Add(5 * time.Millisecond)
	err := machine.Pace(ctx, start, interval, n, lag, func(i int) error {
		c, err := o.take()
		if err != nil {
			return err
		}
		number := l.first + i
		c.Prepare(number, number%l.owners)
		c.due <- start.Add(time.Duration(i) * interval)
		return c.Send()
	})
	for range l.conns { // all are idle again when all requests are answered
		if err == nil {
			_, err = o.take()
		}
	}
	o.over.Store(true)
	err = errors.Join(err, l.until(time.Unix(1, 0)))
	o.readers.Wait()
	l.first += n
	return err
}

// take waits for a connection that carries no request.
func (o *webLoop) take() (*webConn, error) {
	select {
	case c := <-o.idle:
		return c, nil
	case err := <-o.failed:
		return nil, err
	}
}

// read reads the answers on a connection until the loop is over.
func (o *webLoop) read(c *webConn) {
	for {
		err := c.Await()
		if err == nil {
			due := <-c.due // was sent before the request. This also orders Prepare before Receive
			if err = c.Receive(); err == nil {
				took := time.Since(due)
				o.mu.Lock()
				o.latency.Record(took)
				o.mu.Unlock()
				o.idle <- c
				continue
			}
		}
		if !o.over.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			o.failed <- fmt.Errorf("an answer of the open loop: %w", err)
		}
		return
	}
}
