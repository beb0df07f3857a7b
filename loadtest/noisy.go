package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

const (
	// noisyOwner has the backlog that must not affect the others.
	noisyOwner = "noisy"
	// longestNoise is the maximum time for which quiet owners are measured beside a backlog that does not end.
	longestNoise = 30 * time.Minute
	// noiseLook is how often loadtest checks whether the backlog has ended. It has ended when all owners together have
	// at most noiseLeft events.
	noiseLook = time.Second
	noiseLeft = 200
)

// noisy measures quiet owners alone, and then beside an owner with a backlog, from the moment when the backlog is
// stored until it ends. At first the backlog is paused, so that this part has its own figures.
func (r *runner) noisy(ctx context.Context, s *testbed, sc *scenario, c report.Case) (*report.Round, error) {
	noise := spin()
	if _, err := r.deployer.deploy(ctx, s.url, s.js, []part{noise}, func(int) string { return noisyOwner },
		1); err != nil {
		return nil, err
	}
	warm, quiet, n := warming(sc, c), int(float64(c.Rate)*c.Seconds), int(float64(c.Rate)*longestNoise.Seconds())
	l, err := r.newLoop(s, sc, c, warm+quiet+n)
	if err != nil {
		return nil, err
	}
	if err := l.warm(ctx, warm, c.Rate); err != nil {
		return nil, err
	}
	alone, err := l.run(ctx, warm, quiet, c.Rate)
	if err != nil {
		return nil, err
	}
	if sc.purged {
		if err := r.command(ctx, s, "pause", noisyOwner); err != nil {
			return nil, err
		}
	}
	if err := r.fillNoise(s, noise, sc.noise); err != nil {
		return nil, err
	}
	noisy, over := s.whileNoisy(ctx)
	if sc.purged {
		noisy, over = r.whilePurged(ctx, s, sc.noise)
	}
	beside, err := l.runWhile(ctx, noisy, warm+quiet, n, c.Rate)
	if err := errors.Join(err, over()); err != nil {
		return nil, err
	}
	round := l.report(beside)
	round.Metrics["seconds"] = beside.to.At.Sub(beside.from.At).Seconds()
	round.Metrics["p99 first 5 s ms"] = beside.early.At(99)
	round.Metrics["p99 alone ms"] = alone.latency.At(99)
	round.Metrics["p99 beside/alone"] = beside.latency.At(99) / alone.latency.At(99)
	return round, errors.Join(l.verifier.verdict(), s.dead(ctx))
}

// whileNoisy returns a context that is done when fewer events are left than quiet owners may have in progress. over
// returns the error that ended the checks.
func (s *testbed) whileNoisy(ctx context.Context) (noisy context.Context, over func() error) {
	noisy, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		defer stop()
		tick := time.NewTicker(noiseLook)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-noisy.Done():
				failed <- nil
				return
			}
			if left, err := s.left(noisy); noisy.Err() == nil && (err != nil || left < noiseLeft) {
				failed <- err
				return
			}
		}
	}()
	return noisy, func() error { stop(); return <-failed }
}

// controlToken lets the commands of loadtest change the fleet.
const controlToken = "PINWHEEL_CONTROL_TOKEN=token-of-loadtest"

// whilePurged returns a context that is done when the noisy owner's n events are purged. over returns the error that
// ended that.
func (r *runner) whilePurged(ctx context.Context, s *testbed, n int) (noisy context.Context, over func() error) {
	noisy, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		defer stop()
		out, err := r.output(ctx, s, "events", "purge", noisyOwner, "--all")
		if want := fmt.Sprintf("%d purged\n", n); err == nil && out != want {
			err = fmt.Errorf("pinwheel events purge says %q, not %q", out, want)
		}
		failed <- err
	}()
	return noisy, func() error { return <-failed }
}

// command runs a command of pinwheel.
func (r *runner) command(ctx context.Context, s *testbed, args ...string) error {
	_, err := r.output(ctx, s, args...)
	return err
}

// output is what a command of pinwheel prints.
func (r *runner) output(ctx context.Context, s *testbed, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.pinwheel, args...)
	cmd.Env = append(os.Environ(), "PINWHEEL_NATS_URL="+s.url, controlToken)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = append(out, exit.Stderr...)
		}
		return "", fmt.Errorf("pinwheel %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// fillNoise publishes n events whose replies are not awaited.
func (r *runner) fillNoise(s *testbed, p part, n int) error {
	subject := events.Subjects(events.DefaultPrefix).Event(p.kind, noisyOwner, p.name())
	for i := range n {
		if _, err := s.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: p.body(nil, i)},
			jetstream.WithStallWait(publishPatience)); err != nil {
			return err
		}
		if i%1024 == 0 {
			r.bar.count("noise", i, n)
		}
	}
	return (&publisher{js: s.js}).flush(r.o.patience)
}
