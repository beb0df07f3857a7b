package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// sourceScenario is a worker whose events are published while it runs: by way of a stream that is its source, directly,
// or by way of that stream and a program that does the least.
const sourceScenario = "source"

// Systems of sourceScenario, beside report.Ours.
const (
	direct = "direct"
	bridge = "nats.go"
)

const (
	// sourceStream is the stream of the publishers, and sourceSubject what they publish to.
	sourceStream, sourceSubject = "LOAD_ORDERS", "load.orders"
	sourceEvents                = 60_000
)

func newSourcesCommand() *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use: "sources", Short: "Measure a source beside publishing to the worker directly", Args: cobra.NoArgs,
		Long: "Publishes tasks of 1 KB while a worker runs them: to a stream that is a source of the worker (pinwheel),\n" +
			"to the worker (direct), and to the stream, from which a program that is bare nats.go brings them to the worker\n" +
			"(nats.go; its CPU time counts as the fleet's). One nats-server, one process.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return measure(cmd.Context(), cmd.OutOrStdout(), o, o.sourceCases())
		},
	}
	o.commonFlags(c.Flags())
	return c
}

func (o *options) sourceCases() (list []report.Case) {
	for _, system := range []string{report.Ours, direct, bridge} {
		c := o.newCase(&scenario{name: sourceScenario, owners: 1, events: sourceEvents, warm: true}, report.Saturation,
			report.TopologyOne, 1)
		c.System, c.Beside = system, true
		list = append(list, c)
	}
	return list
}

// sourceRun is a run of sourceScenario.
type sourceRun struct {
	*testbed
	r      *runner
	c      report.Case
	body   func(b []byte, id int) []byte
	bridge *machine.Child // nil: there is none
}

// fromSource runs c once.
func (r *runner) fromSource(ctx context.Context, c report.Case) (*report.Round, error) {
	return r.fromSourceOf(ctx, c, order)
}

// fromSourceOf runs c once with these bodies.
func (r *runner) fromSourceOf(ctx context.Context, c report.Case,
	body func(b []byte, id int) []byte) (_ *report.Round, err error) {
	asOurs := c
	asOurs.System = report.Ours // each has a fleet
	s, err := r.open(ctx, &scenario{}, asOurs)
	if err != nil {
		return nil, err
	}
	run := &sourceRun{testbed: s, r: r, c: c, body: body}
	defer func() {
		if err != nil {
			err = errors.Join(err, run.alive())
		}
		run.close()
	}()
	if err := run.prepare(ctx); err != nil {
		return nil, err
	}
	s.meter.AwaitQuiet(ctx, r.o.quiet)
	return run.measure(ctx)
}

func (run *sourceRun) close() {
	if run.bridge != nil {
		run.bridge.Stop(time.Second)
	}
	run.testbed.close()
}

// worker is what gets the events. One with a source checks that each event is of the message that it says.
func (run *sourceRun) worker() part {
	p := task()
	if run.c.System == report.Ours {
		p.worker = "source.mjs"
	}
	return p
}

// subject is what the publisher publishes to.
func (run *sourceRun) subject() string {
	if run.c.System == direct {
		return run.workerSubject()
	}
	return sourceSubject
}

func (run *sourceRun) workerSubject() string {
	return subjects.Event(events.Task, ownerName(0), run.worker().name())
}

// prepare makes the stream, the worker, and what brings the messages.
func (run *sourceRun) prepare(ctx context.Context) error {
	_, err := run.js.CreateStream(ctx, jetstream.StreamConfig{Name: sourceStream, Subjects: []string{sourceSubject}})
	if err != nil {
		return err
	}
	grant := &scenario{policy: []string{"--consume", "stream:" + sourceStream}}
	if err := run.r.setPolicies(ctx, run.testbed, grant, 1); err != nil {
		return err
	}
	n, err := run.r.deployer.deploy(ctx, run.url, run.js, []part{run.worker()}, ownerName, 1)
	if err != nil {
		return err
	}
	if err := run.fleet.awaitWorkers(ctx, n, 1); err != nil {
		return err
	}
	if run.c.System != bridge {
		return nil
	}
	_, err = run.js.CreateConsumer(ctx, sourceStream, jetstream.ConsumerConfig{Durable: durable,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxAckPending: 20_000})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "bridge")
	cmd.Env = append(os.Environ(), "NATS_URL="+run.url, "STREAM="+sourceStream, "CONSUMER="+durable,
		"SUBJECT="+run.workerSubject())
	if run.bridge, err = machine.StartChild(bridge, cmd, nil); err != nil {
		return err
	}
	run.meter.AddToFleet(run.bridge)
	return nil
}

// measure publishes all events while the worker runs them. Counting begins when a fifth has ended.
func (run *sourceRun) measure(ctx context.Context) (*report.Round, error) {
	start, publishing := run.meter.Read(), make(chan error, 1)
	go func() { publishing <- run.publish() }()
	from, before, err := run.ended(ctx, run.c.Events/5)
	if err != nil {
		return nil, errors.Join(err, <-publishing)
	}
	if err := <-publishing; err != nil {
		return nil, err
	}
	if err := run.drained(ctx); err != nil {
		return nil, err
	}
	to := run.meter.Read()
	all, err := run.fleet.metric(ctx, endedMetric)
	if err != nil {
		return nil, err
	}
	if err := run.dead(ctx); err != nil {
		return nil, err
	}
	if all < float64(run.c.Events) {
		return nil, fmt.Errorf("%.0f of %d events ended", all, run.c.Events)
	}
	if all == before { // too few to look at meanwhile
		from, before = start, 0
	}
	seconds := to.At.Sub(from.At).Seconds()
	round := &report.Round{Redelivered: int(all) - run.c.Events, Metrics: map[string]float64{"seconds": seconds,
		"events/s": (all - before) / seconds}}
	run.meter.Report(round.Metrics, from, to, int(all-before))
	return round, nil
}

func (run *sourceRun) publish() error {
	for id := range run.c.Events {
		m := &nats.Msg{Subject: run.subject(), Data: run.body(nil, id),
			Header: nats.Header{events.HeaderContentType: {"application/json"}}}
		if _, err := run.js.PublishMsgAsync(m, jetstream.WithStallWait(publishPatience)); err != nil {
			return fmt.Errorf("publish event %d: %w", id, err)
		}
	}
	return (&publisher{js: run.js}).flush(run.r.o.patience)
}

// endedMetric counts events that ended.
const endedMetric = "pinwheel_events_total"

const (
	// endedLook is how often a run asks how many events have ended. That takes the fleet milliseconds.
	endedLook = 500 * time.Millisecond
	// drainedLook is how often it asks whether any is left.
	drainedLook = 50 * time.Millisecond
)

// ended waits until n events have ended. It returns a reading of that moment, and how many they were by then.
func (run *sourceRun) ended(ctx context.Context, n int) (now machine.Reading, have float64, err error) {
	return now, have, run.wait(ctx, endedLook, func() (bool, float64, error) {
		if have, err = run.fleet.metric(ctx, endedMetric); err != nil {
			return false, 0, err
		}
		now = run.meter.Read()
		return have >= float64(n), have, nil
	})
}

// drained waits until all messages are acked at their source, and all events by the fleet.
func (run *sourceRun) drained(ctx context.Context) error {
	return run.wait(ctx, drainedLook, func() (bool, float64, error) {
		waiting, err := run.waiting(ctx)
		if err != nil {
			return false, 0, err
		}
		left, err := run.left(ctx)
		return left+waiting == 0, -float64(left + waiting), err
	})
}

// wait calls look until it is done, or until what it counts has not risen for too long.
func (run *sourceRun) wait(ctx context.Context, every time.Duration, look func() (bool, float64, error)) error {
	patience := firstPatience * run.r.o.patience
	last, at := math.Inf(-1), time.Now()
	for {
		done, have, err := look()
		switch {
		case err != nil || done:
			return err
		case have > last:
			last, at = have, time.Now()
		case time.Since(at) > patience:
			return fmt.Errorf("of %d events none ended for %s", run.c.Events, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
		if run.alive() != nil {
			return errDied
		}
	}
}

func (run *sourceRun) alive() error {
	if run.bridge != nil {
		return errors.Join(run.testbed.alive(), run.bridge.Ended())
	}
	return run.testbed.alive()
}

// waiting is how many messages are not acked at their source.
func (run *sourceRun) waiting(ctx context.Context) (left int, err error) {
	if run.c.System == direct {
		return 0, nil
	}
	st, err := run.js.Stream(ctx, sourceStream)
	if err != nil {
		return 0, err
	}
	list := st.ListConsumers(ctx)
	for info := range list.Info() {
		left += int(info.NumPending) + info.NumAckPending
	}
	return left, list.Err()
}
