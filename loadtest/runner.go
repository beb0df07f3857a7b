package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// runner runs cases. It has the state that lasts as long as the program.
type runner struct {
	o        *options
	dir      string // all other files are in it
	stores   string // folder for what NATS stores
	pinwheel string // binary
	peers    []peer // available peers
	peerDir  string // loadtest/peers, set when it is first needed
	deployer *deployer
	slow     *machine.SlowServer
	bar      *bar
}

// measure runs all cases in every round, and writes the report.
func measure(ctx context.Context, out io.Writer, o *options, cases []report.Case) error {
	r, err := openRunner(ctx, o)
	if err != nil {
		return err
	}
	defer r.close()
	if err := errors.Join(r.missing(ctx, cases), r.missingSystems(ctx, cases)); err != nil {
		return err
	}
	measured := report.New(ctx, cases, curveTexts())
	for round := range o.rounds {
		for i, c := range cases {
			r.bar.begin(round, o.rounds, i, len(cases), c.Name())
			one, err := r.runQuietly(ctx, c)
			if err != nil {
				r.bar.end("")
				return fmt.Errorf("%s, round %d: nothing is reported%s, because\n%w", c.Name(), round+1, measured.Keep(o.JSON), err)
			}
			measured.Cases[i].Rounds = append(measured.Cases[i].Rounds, *one)
			r.bar.end(one.Line())
		}
	}
	measured.Ended = time.Now().UTC()
	if err := measured.Print(out); err != nil {
		return err
	}
	return measured.Write(o.Files)
}

func openRunner(ctx context.Context, o *options) (*runner, error) {
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return nil, err
	}
	r := &runner{o: o, dir: dir, stores: cmp.Or(o.stores, dir), bar: newBar(os.Stderr), peers: peers()}
	if r.pinwheel, err = binary(ctx, o.pinwheel, dir); err != nil {
		r.close()
		return nil, err
	}
	if r.slow, err = machine.OpenSlowServer(); err != nil {
		r.close()
		return nil, err
	}
	r.deployer = newDeployer(r.pinwheel, dir, map[string]string{"SLOW_URL": r.slow.URL})
	return r, nil
}

func (r *runner) close() {
	if r.slow != nil {
		r.slow.Close()
	}
	_ = os.RemoveAll(r.dir)
}

// binary returns the given binary, or builds one from the module in the current directory.
func binary(ctx context.Context, path, dir string) (string, error) {
	if path != "" {
		return filepath.Abs(path)
	}
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "pinwheel")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pinwheel (or name one with --pinwheel): %w\n%s", err, out)
	}
	return path, nil
}

// runQuietly runs c, and repeats the run if other processes disturbed it. If all runs were disturbed, it returns the
// least disturbed one.
func (r *runner) runQuietly(ctx context.Context, c report.Case) (best *report.Round, err error) {
	for range r.o.repeats + 1 {
		one, err := r.run(ctx, c)
		if err != nil {
			return nil, err
		}
		if one.Disturbed = one.Metrics["foreign cores"] > report.ForeignLimit; !one.Disturbed {
			return one, nil
		}
		if best == nil || one.Metrics["foreign cores"] < best.Metrics["foreign cores"] {
			best = one
		}
	}
	return best, nil
}

// run runs c once.
func (r *runner) run(ctx context.Context, c report.Case) (*report.Round, error) {
	if c.Web != "" {
		return r.runWeb(ctx, c)
	}
	if c.Scenario == sourceScenario {
		return r.fromSource(ctx, c)
	}
	sc, err := scenarioOf(c)
	if err != nil {
		return nil, err
	}
	return r.runOf(ctx, sc, c)
}

// runOf runs c with a scenario once, on its own testbed.
func (r *runner) runOf(ctx context.Context, sc *scenario, c report.Case) (_ *report.Round, err error) {
	r.bar.count("starting", 0, 1)
	s, err := r.open(ctx, sc, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.alive())
		}
		s.close()
	}()
	if s.fleet != nil {
		n, err := r.deployer.deploy(ctx, s.url, s.js, sc.parts, ownerName, max(c.Owners, sc.deployed))
		if err != nil {
			return nil, err
		}
		if err := s.fleet.awaitWorkers(ctx, n, c.Processes); err != nil {
			return nil, err
		}
		if err := r.setPolicies(ctx, s, sc, c.Owners); err != nil {
			return nil, err
		}
	}
	if s.fleet == nil || r.o.tails == 0 {
		return r.loaded(ctx, s, sc, c)
	}
	t, err := openTails(s.url, r.o.tails, c.Owners)
	if err != nil {
		return nil, err
	}
	round, err := r.loaded(ctx, s, sc, c)
	taken, lines := t.close()
	if err == nil {
		round.Metrics["tails"], round.Metrics["tail lines"] = float64(taken), float64(lines)
	}
	return round, err
}

// loaded runs the load of c.
func (r *runner) loaded(ctx context.Context, s *testbed, sc *scenario, c report.Case) (*report.Round, error) {
	switch {
	case c.Load == report.Saturation:
		return r.saturate(ctx, s, sc, c)
	case sc.noise > 0:
		return r.noisy(ctx, s, sc, c)
	default:
		return r.openLoop(ctx, s, sc, c)
	}
}

// setPolicies gives the owners the policy of a scenario.
func (r *runner) setPolicies(ctx context.Context, s *testbed, sc *scenario, owners int) error {
	if len(sc.policy) == 0 {
		return nil
	}
	if err := r.command(ctx, s, append([]string{"owners", "set", ownerName(0)}, sc.policy...)...); err != nil {
		return err
	}
	return copyPolicy(ctx, s.js, owners)
}

// ownersBucket is the bucket in which the fleet stores policies (docs/guides/many-owners.md).
const ownersBucket = "PINWHEEL_OWNERS"

// copyPolicy stores the policy of the first owner for all others: ten thousand commands would take half an hour.
func copyPolicy(ctx context.Context, js jetstream.JetStream, owners int) error {
	kv, err := js.KeyValue(ctx, ownersBucket)
	if err != nil {
		return err
	}
	first, err := kv.Get(ctx, ownerName(0))
	if err != nil {
		return err
	}
	for i := 1; i < owners; i++ {
		if _, err := js.PublishAsync("$KV."+ownersBucket+"."+ownerName(i), first.Value(),
			jetstream.WithStallWait(publishPatience)); err != nil {
			return err
		}
	}
	return awaitStored(ctx, js, "policies")
}

// subscribe passes every reply to the publisher's events to the verifier.
func (r *runner) subscribe(s *testbed, p *publisher, j *verifier) error {
	sub, err := s.nc.Subscribe(p.inbox+"*", func(m *nats.Msg) { j.take(m) })
	if err != nil {
		return err
	}
	// A reply that is dropped here would count as lost.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	return s.nc.Flush()
}

var errDied = errors.New("a process died")

// firstPatience is the factor for the wait for the first reply: a peer starts a thread for each owner before it.
const firstPatience = 3

// awaitReplies waits until n events are answered, or until no reply has arrived for patience. Then verdict reports what
// is missing.
func (r *runner) awaitReplies(ctx context.Context, s *testbed, j *verifier, n int) error {
	begin := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answered, last := j.progress()
		if answered >= n {
			return nil
		}
		if last.Before(begin) {
			last = begin
		}
		limit := r.o.patience
		if answered == 0 {
			limit *= firstPatience
		}
		if time.Since(last) > limit {
			return j.verdict()
		}
		r.bar.count("replies", answered, n)
		select {
		case <-j.all:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if s.alive() != nil {
			return errDied // run adds the name of the child
		}
	}
}
