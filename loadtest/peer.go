package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/spf13/cobra"
)

// peer is another way to run the same handler on the same stream.
type peer struct {
	name, about string
	program     string   // program on the machine, or in node_modules/.bin; "": this program
	args        []string // an argument that is a file is one of peers/
	mode        string   // mode of consumer.mjs
	needs       string   // required package
}

func peers() []peer {
	node := func(mode string) peer {
		return peer{name: "node-" + mode, program: "node", args: []string{"consumer.mjs"}, mode: mode,
			needs: "@nats-io/jetstream"}
	}
	denoArgs := []string{"run", "--allow-all", "--quiet", "--no-lock", "--node-modules-dir=manual", "consumer.mjs"}
	list := []peer{
		{name: "floor", about: "Go that reads no body and runs no JavaScript", args: []string{"floor"}},
		{name: "floor-confirmed", about: "the same, with an ack that the server confirms for each event", args: []string{"floor", "--confirm"}},
		node("plain"), node("fetch"), node("threads"), node("threads-fetch"), node("ivm"),
		{name: "deno-plain", program: "deno", args: denoArgs, mode: "plain", needs: "deno"},
		{name: "deno-fetch", program: "deno", args: denoArgs, mode: "fetch", needs: "deno"},
		{name: "bun-plain", program: "bun", args: []string{"run", "consumer.mjs"}, mode: "plain", needs: "bun"},
		{name: "bun-fetch", program: "bun", args: []string{"run", "consumer.mjs"}, mode: "fetch", needs: "bun"},
	}
	abouts := map[string]string{
		"plain": "one thread, a function of a string, no isolation", "fetch": "one thread, Request and Response, no isolation",
		"threads": "a worker thread for each owner", "threads-fetch": "a worker thread for each owner, Request and Response",
		"ivm": "isolated-vm: a V8 isolate for each owner, strings in and out",
	}
	for i := range list {
		if list[i].mode == "ivm" {
			list[i].needs = "isolated-vm"
		}
		if list[i].mode != "" {
			list[i].about = abouts[list[i].mode]
		}
	}
	return list
}

// durable is the name of the consumer that peers pull from.
const durable = "workers"

func newPeersCommand() *cobra.Command {
	o := defaultOptions()
	var names []string
	c := &cobra.Command{
		Use: "peers", Short: "Measure Pinwheel beside other ways to run the same handler on the same stream", Args: cobra.NoArgs,
		Long: "Runs the handler of workers/order.mjs by Pinwheel and by each peer in turn, round by round, and prints medians and ratios.\n" +
			"One nats-server, one process, no limits on what a process may use.\n\n" + describePeers(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			cases, err := o.peerCases(names)
			if err != nil {
				return err
			}
			return measure(cmd.Context(), cmd.OutOrStdout(), o, cases)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&names, "peer", nil, "`NAMES` of peers, beside Pinwheel (default all)")
	f.StringSliceVar(&o.loads, "load", []string{report.Saturation}, "saturation, open, or both")
	f.IntSliceVar(&o.owners, "owners", o.owners, "`NUMBERS` of owners")
	o.commonFlags(f)
	return c
}

func describePeers() string {
	text := ""
	for _, p := range peers() {
		text += fmt.Sprintf("  %-20s %s\n", p.name, p.about)
	}
	return text
}

// peerCases returns cases that compare the systems for every load and number of owners.
func (o *options) peerCases(names []string) ([]report.Case, error) {
	if len(names) == 0 {
		for _, p := range peers() {
			names = append(names, p.name)
		}
	}
	var list []report.Case
	for _, load := range o.loads {
		if load != report.Saturation && load != report.OpenLoop {
			return nil, fmt.Errorf("--load %q: it is %s or %s", load, report.Saturation, report.OpenLoop)
		}
		for _, owners := range o.owners {
			if owners < 1 || owners > warmOwners {
				return nil, fmt.Errorf("--owners %d: it is 1 to %d", owners, warmOwners)
			}
			for _, name := range append([]string{report.Ours}, names...) {
				if name != report.Ours && !slices.ContainsFunc(peers(), func(p peer) bool { return p.name == name }) {
					return nil, fmt.Errorf("--peer %q: it is one of\n%s", name, describePeers())
				}
				sc := &scenario{name: "echo", owners: owners, events: 60_000, rate: 200, warm: true}
				c := o.newCase(sc, load, report.TopologyOne, 1)
				c.System, c.Beside = name, true
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// missing names the packages that must be installed for peers to run, and how to install them. This is an error,
// because a table without a requested peer would be a different table.
func (r *runner) missing(ctx context.Context, cases []report.Case) error {
	var errs []error
	for _, c := range cases {
		i := slices.IndexFunc(r.peers, func(p peer) bool { return p.name == c.System })
		if i < 0 {
			continue
		}
		p := r.peers[i]
		if p.program == "node" {
			if _, err := exec.LookPath("node"); err != nil {
				errs = append(errs, fmt.Errorf("%s needs node, 20 or later, on PATH", p.name))
			}
		}
		if p.needs == "" {
			continue
		}
		if err := r.findPeers(ctx); err != nil {
			return err
		}
		for _, name := range []string{p.needs, "@nats-io/transport-node"} {
			if _, err := os.Stat(filepath.Join(r.peerDir, "node_modules", filepath.FromSlash(name))); err != nil {
				errs = append(errs, fmt.Errorf("%s needs the package %s", p.name, name))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	errs = append(errs, errors.New("install them with: npm install --prefix loadtest/peers\nor leave those peers out: --peer floor,node-plain"))
	return errors.Join(errs...)
}

// findPeers sets the directory of the peers.
func (r *runner) findPeers(ctx context.Context) error {
	if r.peerDir != "" {
		return nil
	}
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return err
	}
	r.peerDir = filepath.Join(root, "loadtest", "peers")
	return nil
}

func (p peer) command(dir, self string) *exec.Cmd {
	switch p.program {
	case "":
		return exec.Command(self, p.args...)
	case "node":
		cmd := exec.Command("node", p.args...)
		cmd.Dir = dir
		return cmd
	default:
		cmd := exec.Command(filepath.Join(dir, "node_modules", ".bin", p.program), p.args...)
		cmd.Dir = dir
		return cmd
	}
}

// openPeer creates a stream like the fleet's, and starts the peer on it.
func (r *runner) openPeer(ctx context.Context, s *testbed, c report.Case) error {
	i := slices.IndexFunc(r.peers, func(p peer) bool { return p.name == c.System })
	if i < 0 {
		return fmt.Errorf("no peer %q", c.System)
	}
	p := r.peers[i]
	if err := s.connect(); err != nil {
		return err
	}
	if err := createStream(ctx, s.js); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := p.command(r.peerDir, self)
	cmd.Env = append(os.Environ(), "NATS_URL="+s.url, "STREAM="+events.StreamEvents, "CONSUMER="+durable, "MODE="+p.mode)
	if s.system, err = machine.StartChild(p.name, cmd, nil); err != nil {
		return err
	}
	s.meter = machine.NewMeter(s.system, s.servers)
	return s.awaitPull(ctx)
}

// createStream creates the stream that publishers use in a fleet. It has one consumer for all lanes instead of one for
// each lane: a peer takes events in the order in which they arrive.
func createStream(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: events.StreamEvents, Subjects: []string{subjects.AllEvents(), subjects.Anchor()},
		Retention:        jetstream.WorkQueuePolicy,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: subjects.AllEvents(), Destination: subjects.Stored()},
		Storage:          jetstream.FileStorage, MaxBytes: 2 << 30, Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return err
	}
	if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: subjects.Anchor()}); err != nil {
		return err
	}
	_, err = js.CreateConsumer(ctx, events.StreamEvents, jetstream.ConsumerConfig{
		Durable: durable, FilterSubject: subjects.AllStored(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
		MaxAckPending: 20_000,
	})
	return err
}

// awaitPull waits until the peer pulls events.
func (s *testbed) awaitPull(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cons, err := s.js.Consumer(ctx, events.StreamEvents, durable)
	if err != nil {
		return err
	}
	for {
		info, err := cons.Info(ctx)
		if err == nil && info.NumWaiting > 0 {
			return nil
		}
		if err := s.alive(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not ask for events; it said last:\n%s", s.system.Name, strings.TrimSpace(s.system.Said()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
