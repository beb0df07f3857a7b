package main

import (
	"context"
	"errors"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// webWarming is the length of the load before a closed loop is measured: systems compile what is hot.
const webWarming = 3 * time.Second

// runWeb runs a case of HTTP once, with a system of its own.
func (r *runner) runWeb(ctx context.Context, c report.Case) (_ *report.Round, err error) {
	r.bar.count("starting", 0, 1)
	if c.Load == report.IdleLoad {
		if err := enoughFiles(c.Connections); err != nil {
			return nil, err
		}
	}
	s, addr, err := r.openWeb(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.alive())
		}
		s.close()
	}()
	if c.Load == report.IdleLoad {
		return r.idleSockets(ctx, s, c, addr)
	}
	s.meter.AwaitQuiet(ctx, r.o.quiet) // before connections, which node closes when they are idle for five seconds
	l, err := openWebLoad(ctx, c, addr, r.o.patience)
	if err != nil {
		return nil, err
	}
	defer l.close()
	defer context.AfterFunc(ctx, l.close)()
	return r.measureWeb(ctx, s, c, l)
}

// leastMeasured is the least number of requests of a closed loop: fewer have no median.
const leastMeasured = 2

// measureWeb warms the system up, and measures.
func (r *runner) measureWeb(ctx context.Context, s *testbed, c report.Case, l *webLoad) (*report.Round, error) {
	length := time.Duration(c.Seconds * float64(time.Second))
	warming, least := time.Duration(0), max(2*c.Owners, 2*c.Rate)
	if c.Load == report.ClosedLoop {
		warming = min(webWarming, length)
	}
	if _, err := l.closed(warming, least, report.NewRecorder()); err != nil {
		return nil, err
	}
	r.bar.count("running", 0, 1)
	latency, lag := report.NewRecorder(), report.NewRecorder()
	n, err := int(float64(c.Rate)*c.Seconds), error(nil)
	from := s.meter.Read()
	if c.Load == report.ClosedLoop {
		n, err = l.closed(length, leastMeasured, latency)
	} else {
		err = l.open(ctx, c.Rate, n, latency, lag)
	}
	if err != nil {
		return nil, err
	}
	to := s.meter.Read()
	round := &report.Round{Metrics: map[string]float64{}}
	round.Curve = latency.Report(round.Metrics)
	if c.Load == report.ClosedLoop {
		round.Metrics["requests/s"] = float64(n) / to.At.Sub(from.At).Seconds()
	} else {
		round.Metrics["lag p99 ms"] = lag.At(99)
	}
	s.meter.Report(round.Metrics, from, to, n)
	for _, group := range []string{machine.GroupFleet, machine.GroupNATS, machine.GroupLoad} {
		if v, ok := round.Metrics[group+" µs/event"]; ok {
			delete(round.Metrics, group+" µs/event")
			round.Metrics[group+" µs/request"] = v
		}
	}
	shares(c, round.Metrics)
	return round, nil
}

// shares adds the share of a request that each byte, run or call of it has.
func shares(c report.Case, metrics map[string]float64) {
	if c.Bytes > 0 {
		perGB := 1e9 / float64(c.Bytes)
		metrics["MB/s"] = 1000 * metrics["requests/s"] / perGB
		for _, group := range []string{machine.GroupFleet, machine.GroupLoad} {
			if v, ok := metrics[group+" µs/request"]; ok {
				metrics[group+" ms/GB"] = v / 1000 * perGB
			}
		}
	}
	if c.Kernel != "" {
		metrics["p50 ms/run"] = metrics["p50 ms"] / report.RunsOfRequest
		if v, ok := metrics[machine.GroupFleet+" µs/request"]; ok {
			metrics[machine.GroupFleet+" ms/run"] = v / 1000 / report.RunsOfRequest
		}
	}
	if c.Call != "" {
		metrics["p50 µs/call"] = 1000 * metrics["p50 ms"] / report.CallsOfRequest
		for _, group := range []string{machine.GroupFleet, machine.GroupNATS} {
			if v, ok := metrics[group+" µs/request"]; ok {
				metrics[group+" µs/call"] = v / report.CallsOfRequest
			}
		}
	}
}
