package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/spf13/cobra"
)

// rolloutOptions are what a rollout is measured with.
type rolloutOptions struct {
	*options
	keys, fleet int
	steps       string
	guard       string
	failures    float64 // percent of the runs of the bad version
	kill        bool
}

func defaultRolloutOptions() *rolloutOptions {
	o := &rolloutOptions{options: defaultOptions(), keys: 1000, fleet: 3, steps: "10%,50%@20s", guard: "failures<2%",
		failures: 5}
	o.rate = 500
	return o
}

func newRolloutCommand() *cobra.Command {
	o := defaultRolloutOptions()
	c := &cobra.Command{
		Use: "rollout", Short: "Roll out a good and a bad version under load, and check each event", Args: cobra.NoArgs,
		Long: "Publishes events with keys at a fixed rate to a worker in several processes. A good version is rolled out to the end, and a bad one\n" +
			"goes back by itself. No event may be lost, each must run in the version that its key has at that time, and no key may move back.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return measureRollouts(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.rate, "rate", o.rate, "events per second")
	f.IntVar(&o.keys, "keys", o.keys, "different keys of the events, in turn")
	f.IntVar(&o.fleet, "processes", o.fleet, "processes of the fleet")
	f.StringVar(&o.steps, "gradual", o.steps, "`STEPS` of the rollouts, as pinwheel deploy --gradual takes them")
	f.StringVar(&o.guard, "guard", o.guard, "guard of the rollouts")
	f.Float64Var(&o.failures, "failures", o.failures, "percent of the runs of the bad version that fail")
	f.BoolVar(&o.kill, "kill", false, "SIGKILL each process that makes a step of a rollout, and start another one")
	f.DurationVar(&o.patience, "patience", o.patience, "time without a reply after which what is missing counts as lost")
	f.StringVar(&o.pinwheel, "pinwheel", "", "`PATH` of the pinwheel binary (default: built from the module of this directory)")
	return c
}

func (o *rolloutOptions) check() error {
	if err := checkBounds([]bound{
		{fmt.Sprintf("--rate %d", o.rate), o.rate >= 1 && o.rate <= 1_000_000, "1 to 1000000"},
		{fmt.Sprintf("--keys %d", o.keys), o.keys >= 1 && o.keys <= 1_000_000, "1 to 1000000"},
		{fmt.Sprintf("--processes %d", o.fleet), o.fleet >= 1 && o.fleet <= 100, "1 to 100"},
		{fmt.Sprintf("--failures %v", o.failures), o.failures > 0 && o.failures <= 100, "above 0, at most 100"},
		{"--gradual " + o.steps, o.steps != "", "steps like 10%,50%@20s"},
		{"--guard " + o.guard, o.guard != "", "like failures<2%"},
	}); err != nil {
		return err
	}
	return o.options.check()
}

// rolloutOwner and rolloutWorker name the worker.
const rolloutOwner, rolloutWorker = "load", "rollout"

// rolloutRun is a fleet whose worker gets events at a fixed rate.
type rolloutRun struct {
	*testbed
	r     *runner
	o     *rolloutOptions
	sheet *rolloutSheet

	mu     sync.Mutex
	fleet  []*fleet
	killed int
	failed error // of a process that was to take the place of a killed one

	replacing sync.WaitGroup
}

// measureRollouts rolls out a good version and a bad one.
func measureRollouts(ctx context.Context, out io.Writer, o *rolloutOptions) (err error) {
	r, err := openRunner(ctx, o.options)
	if err != nil {
		return err
	}
	defer r.close()
	run := &rolloutRun{testbed: &testbed{refused: func(error) {}}, r: r, o: o, sheet: newRolloutSheet(o.keys, o.kill)}
	defer run.close()
	if err := run.open(ctx); err != nil {
		return err
	}
	if err := run.deploy(ctx, 0); err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	var sender sync.WaitGroup
	var sendErr error
	sender.Go(func() { sendErr = run.send(sending) })
	defer sender.Wait()
	defer stop()
	if err := run.sheet.await(ctx, o.rate); err != nil { // a second without a rollout
		return err
	}
	var results []rolloutResult
	for _, failures := range []float64{0, o.failures} {
		result, err := run.rollOut(ctx, failures)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	if err := run.sheet.await(ctx, o.rate); err != nil { // and one after them
		return err
	}
	stop()
	sender.Wait()
	if err := errors.Join(sendErr, run.sheet.drain(ctx, o.patience), run.settled(ctx, o.patience),
		run.replaced()); err != nil {
		return err
	}
	for _, result := range results {
		run.sheet.print(out, result)
	}
	fmt.Fprintf(out, "killed      %d processes\n", run.killed)
	return run.sheet.verdict(results)
}

// open starts NATS and the fleet.
func (x *rolloutRun) open(ctx context.Context) (err error) {
	if x.dir, err = os.MkdirTemp(x.r.stores, "run-"); err != nil {
		return err
	}
	if x.servers, x.url, err = machine.StartServers(ctx, x.dir, 1); err != nil {
		return err
	}
	for range x.o.fleet {
		if err := x.start(ctx); err != nil {
			return err
		}
	}
	x.system = x.fleet[0].Child
	if err := x.connect(); err != nil {
		return err
	}
	if _, err := x.nc.Subscribe(x.sheet.inbox+"*", x.sheet.take); err != nil {
		return err
	}
	return x.sheet.follow(ctx, x.js)
}

// start starts a process of the fleet. With kill, it is killed when it says that it has made a step.
func (x *rolloutRun) start(ctx context.Context) error {
	var self *fleet
	up := make(chan struct{})
	stepped := func(message string) {
		if !x.o.kill || !strings.HasPrefix(message, "rollout went") {
			return
		}
		x.replacing.Go(func() {
			<-up
			_ = self.Cmd.Process.Kill()
			x.mu.Lock()
			x.killed++
			x.mu.Unlock()
			if err := x.start(ctx); err != nil {
				x.mu.Lock()
				x.failed = errors.Join(x.failed, err)
				x.mu.Unlock()
			}
		})
	}
	f, err := startFleet(ctx, fleetOptions{
		binary: x.r.pinwheel, natsURL: x.url, dir: filepath.Join(x.dir, "data"), processes: 1, tell: stepped,
		env: []string{"PINWHEEL_ACK_WAIT=3s"}, // events of a killed process run again after that time
	})
	if err != nil {
		return err
	}
	self = f
	close(up)
	x.mu.Lock()
	x.fleet = append(x.fleet, f)
	x.mu.Unlock()
	return nil
}

func (x *rolloutRun) replaced() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

func (x *rolloutRun) close() {
	x.replacing.Wait()
	x.sheet.leave()
	x.mu.Lock()
	for _, f := range x.fleet {
		f.Stop(0)
	}
	x.mu.Unlock()
	x.system = nil
	x.testbed.close()
}

// deploy runs pinwheel deploy with a version of which that percentage of the runs fails.
func (x *rolloutRun) deploy(ctx context.Context, failures float64, args ...string) error {
	for _, name := range []string{rolloutWorker + ".mjs", rolloutWorker + ".pinwheel.json"} {
		text, err := workerFiles.ReadFile("workers/" + name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".mjs") { // each version is another one
			text = fmt.Appendf(text, "// %d\n", time.Now().UnixNano())
		}
		if err := os.WriteFile(filepath.Join(x.r.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	args = append([]string{"deploy", filepath.Join(x.r.dir, rolloutWorker+".mjs"), "--owner", rolloutOwner, "--var",
		fmt.Sprintf("FAILURES=%v", failures)}, args...)
	cmd := exec.CommandContext(ctx, x.r.pinwheel, args...)
	cmd.Env = append(os.Environ(), "PINWHEEL_NATS_URL="+x.url)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pinwheel deploy: %w\n%s", err, out)
	}
	return nil
}

// exitGuard is the exit code of a deploy whose guard failed.
const exitGuard = 4

// rolloutResult is how one rollout went.
type rolloutResult struct {
	bad      bool
	from, to time.Time // of the command
	took     time.Duration
}

// rollOut rolls out a version, and waits for the end.
func (x *rolloutRun) rollOut(ctx context.Context, failures float64) (rolloutResult, error) {
	result := rolloutResult{bad: failures > 0, from: time.Now()}
	err := x.deploy(ctx, failures, "--gradual", x.o.steps, "--guard", x.o.guard)
	result.to = time.Now()
	result.took = result.to.Sub(result.from)
	var exit *exec.ExitError
	switch {
	case !result.bad && err != nil:
		return result, fmt.Errorf("the rollout of the good version: %w", err)
	case result.bad && (!errors.As(err, &exit) || exit.ExitCode() != exitGuard):
		return result, fmt.Errorf("the rollout of the bad version must end with exit code %d: %w", exitGuard, err)
	}
	return result, nil
}

// send publishes events at the rate until ctx is done.
func (x *rolloutRun) send(ctx context.Context) error {
	const many = 1 << 30
	every := time.Second / time.Duration(x.o.rate)
	err := machine.Pace(ctx, time.Now(), every, many, report.NewRecorder(), func(id int) error {
		text, err := json.Marshal(id)
		if err != nil {
			return err
		}
		m := &nats.Msg{Subject: subjects.Event(events.Task, rolloutOwner, rolloutWorker), Data: text, Header: nats.Header{
			events.HeaderReplyTo: {x.sheet.publishing(id)}, events.HeaderEventID: {eventID(id)},
			events.HeaderVersionKey: {x.sheet.key(id)},
		}}
		_, err = x.js.PublishMsgAsync(m)
		return err
	})
	if ctx.Err() != nil {
		err = nil
	}
	return err
}
