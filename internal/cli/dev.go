package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/fleet"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// devOwner is the owner of the workers of `pinwheel dev`.
const devOwner = "dev"

func newDevCommand(e *env) *cobra.Command {
	port := 0
	var vars, roots []string
	c := e.command(cobra.Command{
		Use: "dev PATH…", Short: "Run workers on this machine, and deploy them again when they are saved", Args: cobra.MinimumNArgs(1),
		Long: "Runs a fleet with its own NATS (data in PINWHEEL_DATA, by default .pinwheel) and deploys the given files, or\n" +
			"all .js and .ts files of the given directories, as workers of the owner dev. A saved file is\n" +
			"deployed again, and a deleted one stops running. Prints a line for each event, and the workers' console output.",
		Example: "  pinwheel dev examples/hello.js\n  pinwheel dev src --var WEBHOOK_SECRET=s3cret",
	}, func(ctx context.Context, paths []string) error {
		cfg := e.cfg
		cfg.NatsURL, cfg.NatsContext = "", ""
		if port != 0 {
			cfg.NatsPort = port
		}
		if err := cfg.Validate(); err != nil {
			return usage("--nats-port is %d: it is 1 to 65535, or -1 for a free one", port)
		}
		log, err := config.NewLogger(e.err, cfg)
		if err != nil {
			return err
		}
		// The user wants to see the output of the workers, and only the warnings and errors of the fleet.
		if cfg.LogLevel == "info" {
			log = log.Level(zerolog.WarnLevel)
		}
		given, err := pairs("--var", vars)
		if err != nil {
			return err
		}
		return runDev(ctx, cfg, log, &lockedWriter{w: e.out}, paths, given, roots...)
	})
	c.Flags().StringArrayVar(&vars, "var", nil, "`NAME=VALUE`: env.NAME is the string VALUE in all of them; may be repeated")
	c.Flags().StringArrayVar(&roots, "root", nil, "`DIR` from which files may be read, in place of each file's project; may be repeated")
	c.Flags().IntVar(&port, "nats-port", 0, "port of the embedded NATS (default PINWHEEL_NATS_PORT, 4222)")
	return c
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
	fleet  *fleet.Process
	out    io.Writer
	check  *isolates.Checker
	watch  *deploy.FileWatcher
	files  []string // sources that were named or found
	roots  []string // directories to read files from, if any are named
	dirs   []string
	inputs map[string][]string // per source: the files that went into its bundle
	vars   map[string]string
	shown  map[string]*events.Worker // the active version of each source
	broken map[string]bool           // sources whose last deploy printed an error
}

// runDev runs the fleet with everything in paths deployed. It deploys a source again when it is saved. vars are added
// to those of each worker.
func runDev(ctx context.Context, cfg config.Config, log zerolog.Logger, out io.Writer, paths []string, vars map[string]string, roots ...string) error {
	d := &dev{out: out, vars: vars, roots: roots, inputs: map[string][]string{}, shown: map[string]*events.Worker{}, broken: map[string]bool{}}
	if err := d.find(paths); err != nil {
		return err
	}
	var err error
	if d.watch, err = deploy.OpenFileWatcher(); err != nil {
		return err
	}
	defer func() { _ = d.watch.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = fleet.Serve(ctx, cfg, log, func(p *fleet.Process, admin string) {
		d.fleet = p
		if err := d.start(ctx, admin); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// find lists the sources that paths name. A directory stands for the sources in it.
func (d *dev) find(paths []string) error {
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return usage("%s: no such file or directory", p)
		case err != nil:
			return err
		case info.IsDir():
			d.dirs = append(d.dirs, p)
		case !deploy.IsSource(p):
			return usage("%s: a worker is a .js, .mjs, .ts, .mts, .jsx or .tsx file", p)
		default:
			d.files = append(d.files, p)
		}
	}
	if len(d.sources()) == 0 {
		return usage("%s: no .js or .ts files there", strings.Join(paths, ", "))
	}
	return nil
}

// sources returns the files to deploy now: the named ones and those in the directories.
func (d *dev) sources() []string {
	list := slices.Clone(d.files)
	for _, dir := range d.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it may be missing while it is being renamed
		}
		for _, e := range entries {
			if p := filepath.Join(dir, e.Name()); e.Type().IsRegular() && deploy.IsSource(p) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// start deploys everything once. Then it follows changes until ctx is done.
func (d *dev) start(ctx context.Context, admin string) error {
	var err error
	if d.check, err = d.fleet.OpenChecker(); err != nil {
		return err
	}
	defer d.check.Close()
	logs, err := d.fleet.Conn().Subscribe(d.subjects().Logs("*", "*"), d.printLine)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Unsubscribe() }()
	d.fleet.OnReport(func(r *lifecycle.Report) { eventLine(d.out, r) })
	defer context.AfterFunc(ctx, d.tellDrain)()
	d.fleet.OnTick(func(owner, worker, schedule string, tick time.Time) {
		fmt.Fprintf(d.out, "%s tick  %s/%s  schedule %s, %s\n", time.Now().Format("15:04:05.000"), owner, worker, schedule, tick.UTC().Format(time.RFC3339))
	})
	fmt.Fprintf(d.out, "Pinwheel on %s", d.fleet.URL())
	if admin != "" {
		fmt.Fprintf(d.out, ", metrics on http://%s/metrics", admin)
	}
	fmt.Fprintln(d.out)
	for _, p := range d.sources() {
		d.deploy(ctx, p)
	}
	if err := d.follow(); err != nil {
		return err
	}
	return d.watch.Run(ctx, func(changed []string) {
		for _, p := range d.sources() {
			if d.concerns(p, changed) && exists(p) {
				d.deploy(ctx, p)
			}
		}
		d.removeGone(ctx)
		if err := d.follow(); err != nil {
			fmt.Fprintln(d.out, err)
		}
	})
}

func (d *dev) subjects() events.Subjects { return events.Subjects(d.fleet.Config().Prefix) }

// tellDrain prints which events still run when the user ends the command.
func (d *dev) tellDrain() {
	if n := d.fleet.Stats().Dispatch.Running; n > 0 {
		fmt.Fprintf(d.out, "ending: waits for %s, at most %s; another Ctrl-C ends at once\n", counted(n, "event"), d.fleet.Config().DrainTimeout)
	}
}

// goneAfter is how long a source must be missing before its worker is removed. Editors that save by renaming remove the
// file for a moment.
const goneAfter = 300 * time.Millisecond

// removeGone removes the workers whose sources were deleted.
func (d *dev) removeGone(ctx context.Context) {
	gone := func() (list []string) {
		for p := range d.shown {
			if !exists(p) {
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
		w := d.shown[p]
		if err := d.fleet.Workers().Remove(ctx, w.Owner, w.Name); err != nil && !errors.Is(err, deploy.ErrNotFound) {
			fmt.Fprintf(d.out, "✗ %s is gone, and %s could not be removed: %v\n", p, w.Target(), err)
			continue
		}
		fmt.Fprintf(d.out, "– %s is gone: %s runs no more\n", p, w.Target())
		delete(d.shown, p)
		delete(d.inputs, p)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// concerns reports whether a change of these files changes the worker of source.
func (d *dev) concerns(source string, changed []string) bool {
	abs, _ := filepath.Abs(source)
	return slices.ContainsFunc(changed, func(c string) bool {
		return c == abs || slices.Contains(d.inputs[source], c)
	})
}

// follow watches the sources and what they import.
func (d *dev) follow() error {
	files := slices.Clone(d.files)
	for _, inputs := range maps.All(d.inputs) {
		files = append(files, inputs...)
	}
	return d.watch.Set(files, d.dirs)
}

// deploy deploys the file at path as the worker with its name. It prints errors for the author.
func (d *dev) deploy(ctx context.Context, path string) {
	w, changed, err := d.deployed(ctx, path)
	if err != nil {
		d.broken[path] = true
		fmt.Fprintf(d.out, "✗ %s\n%s\n", path, indent(err.Error()))
		return
	}
	first := d.shown[path] == nil
	if changed || first || d.broken[path] {
		fmt.Fprintf(d.out, "✓ %s is %s, version %s\n", path, w.Target(), w.Version)
	}
	if first {
		d.show(w)
	}
	d.shown[path] = w
	delete(d.broken, path)
}

func (d *dev) deployed(ctx context.Context, path string) (w *events.Worker, changed bool, err error) {
	bundle, err := deploy.Build(ctx, path, d.roots...)
	if err != nil {
		return nil, false, err
	}
	d.inputs[path] = bundle.Inputs
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	return d.fleet.Workers().Deploy(ctx, deploy.Request{Owner: devOwner, Name: workerName(path), Bundle: bundle, Bindings: events.Bindings{Vars: d.vars}}, d.check)
}

// show prints how to call the worker.
func (d *dev) show(w *events.Worker) {
	for _, s := range w.Schedules {
		fmt.Fprintf(d.out, "    ticks by itself: %s\n", scheduleText(s))
	}
	port := ""
	if p := d.fleet.Config().NatsPort; d.fleet.Embeds() && p != 4222 {
		port = fmt.Sprintf("PINWHEEL_NATS_URL=%s ", d.fleet.URL())
	}
	for _, k := range w.Handlers {
		fmt.Fprintf(d.out, "    %spinwheel send %s %s --data '{}'\n", port, k, w.Target())
		fmt.Fprintf(d.out, "    nats req -s %s %s '{}'\n", d.fleet.URL(), d.subjects().Call(k, w.Owner, w.Name))
	}
}

// printLine prints a log line of a worker.
func (d *dev) printLine(m *nats.Msg) {
	var l events.LogLine
	if json.Unmarshal(m.Data, &l) != nil {
		return
	}
	text := l.Text
	if l.EventID != "" {
		text += fmt.Sprintf("  (event %s, attempt %d)", l.EventID, l.Attempt)
	}
	if l.Stack != "" {
		text += "\n" + l.Stack
	}
	fmt.Fprintf(d.out, "%s %-5s %s/%s  %s\n", l.Time.Format("15:04:05.000"), l.Level, l.Owner, l.Worker, printable(text))
}

// workerName is the base name of a source without its extension.
func workerName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}

// eventLine writes a line about the reply of an attempt, or about its failure.
func eventLine(out io.Writer, r *lifecycle.Report) {
	e, status := r.Attempt.Event, ""
	switch {
	case r.End != nil && r.End.Failure != nil:
		status = "✗ " + string(r.End.Failure.Reason)
	case r.Reply == nil && r.End != nil && r.End.Retry:
		status = "asks to run again"
	case r.Reply == nil: // its line was printed when it had a reply
		return
	case e.Kind == events.Fetch:
		status = fmt.Sprint(r.Reply.Status)
	default:
		status = "✓"
	}
	what := e.Kind.String()
	if e.Kind == events.Fetch {
		what = e.Method + " " + e.URL
	}
	took := time.Since(r.Attempt.Start).Round(10 * time.Microsecond)
	fmt.Fprintf(out, "%s event %s/%s  %s  %s  %s  event %s, attempt %d\n",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, printable(what), status, took, printable(e.ID), r.Attempt.Number)
}
