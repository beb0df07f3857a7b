package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// devOwner is the owner of the workers of `pinwheel dev`.
const devOwner = "dev"

func newDevCommand(e *env) *cobra.Command {
	port, httpPort := 0, 0
	var vars, roots, plain []string
	c := e.command(cobra.Command{
		Use: "dev PATH…", Short: "Run workers on this machine, and deploy them again when they are saved", Args: cobra.MinimumNArgs(1),
		Long: "Runs a fleet with its own NATS (data in PINWHEEL_DATA, by default .pinwheel) and deploys the given files and\n" +
			"directories as workers of the owner dev. A directory with a manifest is one worker, as for 'pinwheel deploy'. Of other\n" +
			"directories, each .js and .ts file with a handler is a worker, but for tests. A saved file is deployed again, and a deleted one stops running. Prints a\n" +
			"line for each event, and the workers' console output.\n\n" +
			"The values in .dev.vars beside a source, or in a worker's directory, are secrets of the worker; without that file, those in\n" +
			".env and .env.local.",
		Example: "  pinwheel dev examples/hello.js\n  pinwheel dev src --var GREETING=hello",
	}, func(ctx context.Context, paths []string) error {
		cfg := e.cfg
		cfg.NatsURL, cfg.NatsContext = "", ""
		given, err := pairs("--var", vars)
		if err != nil {
			return err
		}
		if err := checkVars(given, plain); err != nil {
			return err
		}
		if port != 0 {
			cfg.NatsPort = port
		}
		if cfg, err = withDevHTTP(cfg, httpPort); err != nil {
			return err
		}
		if err := cfg.Validate(); err != nil {
			return usage("--nats-port is %d: it is 1 to 65535, or -1 for a free one", port)
		}
		log, err := config.NewLogger(e.Raw.Err, cfg)
		if err != nil {
			return err
		}
		// The user wants to see the output of the workers, and only the warnings and errors of the fleet.
		if cfg.LogLevel == "info" {
			log = log.Level(zerolog.WarnLevel)
		}
		return runDev(ctx, cfg, log, &lockedWriter{w: e.Colored()}, paths, given, roots...)
	})
	c.Flags().StringArrayVar(&vars, "var", nil, "`NAME=VALUE`: env.NAME is the string VALUE in all of them; may be repeated")
	c.Flags().StringArrayVar(&plain, "plain", nil, "`NAME` of a --var that looks like a secret and is none; may be repeated")
	c.Flags().StringArrayVar(&roots, "root", nil, "`DIR` from which files may be read, in place of each file's project; may be repeated")
	c.Flags().IntVar(&httpPort, "port", 0, "port on 127.0.0.1 where the workers answer HTTP requests, in place of PINWHEEL_HTTP_ADDR (default 8787); -1: a free one")
	c.Flags().IntVar(&port, "nats-port", 0, "port of the embedded NATS (default PINWHEEL_NATS_PORT, 4222)")
	return c
}

// devHTTPPort is where workers of dev answer HTTP requests.
const devHTTPPort = 8787

// withDevHTTP is cfg with what dev has in place of empty settings for HTTP requests. port is --port.
func withDevHTTP(cfg config.Config, port int) (config.Config, error) {
	if port < -1 || port > 65535 {
		return cfg, usage("--port is %d: it is 1 to 65535, or -1 for a free one", port)
	}
	if port != 0 || cfg.HTTPAddr == "" {
		cfg.HTTPAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(max(0, cmp.Or(port, devHTTPPort))))
	}
	if len(cfg.HTTPHosts) == 0 { // a page of another site must not read workers, whatever name it gives this machine
		cfg.HTTPHosts = config.List{"localhost"}
	}
	cfg.HTTPPaths, cfg.HTTPDomain, cfg.HTTPMessages = cmp.Or(cfg.HTTPPaths, devOwner), cmp.Or(cfg.HTTPDomain,
		"localhost"), true
	cfg.Runs = cmp.Or(cfg.Runs, string(workers.RunsAll))
	return cfg, nil
}

// lockedWriter writes the lines of several goroutines one after the other.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// dev is a fleet on a developer's machine with the workers from some files and directories.
type dev struct {
	fleet     *fleet.Process
	out       io.Writer
	check     *isolates.Checker
	watch     *bundle.FileWatcher
	files     []string // sources that were named, and directories that are one worker
	roots     []string // directories to read files from, if any are named
	dirs      []string
	inputs    map[string][]string          // per source: the files that went into its bundle
	vars      map[string]string            // of --var
	stored    map[string]map[string]string // per worker: the values from .dev.vars that are stored as secrets
	shown     map[string]*workers.Worker   // the active version of each source
	broken    map[string]bool              // sources whose last deploy printed an error
	console   *besideFleet
	lines     *eventLines
	secrets   *deploy.Secrets
	recipient string // secrets are encrypted to this one
}

// runDev runs the fleet with everything in paths deployed. It deploys a source again when it is saved. vars are added
// to those of each worker.
func runDev(ctx context.Context, cfg config.Config, log zerolog.Logger, out io.Writer, paths []string,
	vars map[string]string, roots ...string) error {
	d := &dev{out: out, vars: vars, roots: roots, inputs: map[string][]string{}, stored: map[string]map[string]string{},
		shown: map[string]*workers.Worker{}, broken: map[string]bool{}}
	if err := d.find(paths); err != nil {
		return err
	}
	cfg, err := fleet.WithOwnKey(cfg)
	if err != nil {
		return err
	}
	if d.watch, err = bundle.OpenFileWatcher(); err != nil {
		return err
	}
	defer func() { _ = d.watch.Close() }()
	open := cfg.ControlToken == "" && cfg.ConsoleToken == ""
	if open && cfg.Control == "" {
		cfg.ControlToken = rand.Text() // for the console
	}
	if d.console, err = openDevConsole(cfg, config.Version(), log, open); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = fleet.Serve(ctx, cfg, log, func(p *fleet.Process, admin string) {
		d.fleet = p
		d.console.begin(ctx, p.URL(), func() { cancel(nil) })
		if err := d.start(ctx, admin); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	cancel(nil)
	if err = d.console.close(portTaken(err, cfg.HTTPAddr)); err != nil {
		return err
	}
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// start deploys everything once. Then it follows changes until ctx is done.
func (d *dev) start(ctx context.Context, admin string) error {
	var err error
	if d.check, err = d.fleet.OpenChecker(); err != nil {
		return err
	}
	defer d.check.Close()
	if err := d.openSecrets(ctx); err != nil {
		return err
	}
	if err := d.grantHosts(ctx); err != nil {
		return err
	}
	logs, err := d.fleet.Conn().Subscribe(d.subjects().Logs("*", "*"), d.printLine)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Unsubscribe() }()
	d.lines = &eventLines{out: d.out, subjects: d.subjects(), show: d.command("dead show"),
		failed: map[*lifecycle.Delivery]string{}, letters: map[string]string{}, running: map[string]int{}}
	dead, err := d.lines.followDead(ctx, d.fleet.Conn())
	if err != nil {
		return err
	}
	defer dead.Stop()
	d.fleet.Observe(d.lines)
	ending := sync.OnceFunc(func() { fmt.Fprintln(d.out, d.lines.ending(d.fleet.Config().DrainTimeout)) })
	defer context.AfterFunc(ctx, ending)() // at once, also while something is deployed
	defer func() {
		if ctx.Err() != nil { // this may end before the other begins
			ending()
		}
	}()
	d.fleet.OnTick(func(owner, worker, schedule string, tick time.Time) {
		fmt.Fprintf(d.out, "%s tick  %s/%s  schedule %s, %s\n", time.Now().Format("15:04:05.000"), owner, worker, schedule,
			tick.UTC().Format(time.RFC3339))
	})
	fmt.Fprintf(d.out, "Pinwheel on %s", d.fleet.URL())
	if admin != "" {
		fmt.Fprintf(d.out, ", metrics on http://%s/metrics", admin)
	}
	fmt.Fprintf(d.out, "\nConsole on http://%s/\n", d.console.addr())
	if err := d.follow(); err != nil { // first, so that what is saved from now on is seen
		return err
	}
	if err := d.deployAll(ctx, d.sources()); err != nil {
		return err
	}
	return d.watch.Run(ctx, func(changed []string) {
		sources := slices.DeleteFunc(d.sources(), func(p string) bool { return !d.concerns(p, changed) || !exists(p) })
		if err := d.deployAll(ctx, sources); err != nil {
			fmt.Fprintln(d.out, err)
		}
		d.removeGone(ctx)
		if err := d.follow(); err != nil {
			fmt.Fprintln(d.out, err)
		}
	})
}

// devPolicy grants every host, every source and WebAssembly to the workers of dev.
var devPolicy = workers.Policy{
	WASM:    true,
	Hosts:   []string{workers.AnyHost},
	Consume: []string{"stream:*", "kv:*", "objects:*", "subject:>"},
}

// grantHosts grants to the workers of dev what deploys here do. A rollback looks only at the policy. In a NATS that
// others have too, only its operator grants.
func (d *dev) grantHosts(ctx context.Context) error {
	if !d.fleet.Embeds() {
		return nil
	}
	js, err := jetstream.New(d.fleet.Conn())
	if err != nil {
		return err
	}
	policies, err := deploy.OpenPolicies(ctx, js, inventory.Deploy(d.fleet.Config()))
	if err != nil {
		return err
	}
	_, err = policies.Set(ctx, devOwner, func(p *workers.Policy) {
		p.Hosts, p.Consume, p.WASM = devPolicy.Hosts, devPolicy.Consume, devPolicy.WASM
	})
	return err
}

func (d *dev) subjects() events.Subjects { return events.Subjects(d.fleet.Config().Prefix) }

// goneAfter is how long a source must be missing before its worker is removed. Editors that save by renaming remove the
// file for a moment.
const goneAfter = 300 * time.Millisecond

// removeGone removes the workers whose sources were deleted.
func (d *dev) removeGone(ctx context.Context) {
	gone := func() (list []string) {
		sources := d.sources()
		for p := range d.shown {
			if !exists(p) || !slices.Contains(sources, p) {
				list = append(list, p)
			}
		}
		return list
	}
	if len(gone()) == 0 {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(goneAfter):
	}
	for _, p := range gone() {
		why := p + " is gone"
		if exists(p) {
			why = p + " has no handler any more"
		}
		if d.remove(ctx, why, d.shown[p]) {
			delete(d.shown, p)
			delete(d.inputs, p)
		}
	}
}

// remove ends a worker. why begins the line that says so.
func (d *dev) remove(ctx context.Context, why string, w *workers.Worker) bool {
	if err := d.fleet.Workers().Remove(ctx, w.Owner, w.Name); err != nil && !errors.Is(err, deploy.ErrNotFound) {
		fmt.Fprintf(d.out, "✗ %s, and %s could not be removed: %v\n", why, w.Target(), err)
		return false
	}
	fmt.Fprintf(d.out, "– %s: %s runs no more\n", why, w.Target())
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// deploy deploys the file at path as the worker with its name. It prints errors for the author.
func (d *dev) deploy(ctx context.Context, path string) {
	bundle, w, changed, err := d.deployed(ctx, path)
	if err != nil {
		d.refused(path, err)
		return
	}
	before := d.shown[path]
	first := before == nil || before.Name != w.Name
	if changed || first || d.broken[path] {
		fmt.Fprintf(d.out, "✓ %s is %s, version %s\n", path, w.Target(), w.Version)
		printWarnings(d.out, bundle)
	}
	if first {
		d.show(w)
	}
	d.shown[path] = w
	delete(d.broken, path)
	if before != nil && before.Name != w.Name && d.duplicate(path, before.Name) == nil {
		d.remove(ctx, path+" has another name", before)
	}
}

func (d *dev) deployed(ctx context.Context, path string) (b *bundle.Bundle, w *workers.Worker, stored bool, err error) {
	if b, err = bundle.Build(ctx, path, d.roots...); err != nil {
		d.inputs[path] = append(d.inputs[path], missingFiles(err)...)
		return nil, nil, false, err
	}
	d.inputs[path] = b.Inputs
	if err := d.duplicate(path, b.Name); err != nil {
		return nil, nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeFor(b))
	defer cancel()
	if err := d.setDevVars(ctx, path, b); err != nil {
		return nil, nil, false, err
	}
	done, err := d.fleet.Workers().Deploy(ctx, deploy.Request{
		Owner: devOwner, Name: b.Name, Bundle: b, Bindings: workers.Bindings{Vars: d.vars},
		Plain: slices.Collect(maps.Keys(d.vars)), Secrets: d.secrets,
		Policy: devPolicy,
	}, d.check)
	return b, done.Worker, done.Stored || done.Changed, err
}
