package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/isolates"
)

func newDeployCommand(e *env) *cobra.Command {
	var req deploy.Request
	var vars, queues []string
	c := e.command(cobra.Command{
		Use: "deploy PATH --owner OWNER", Short: "Make a source file the active version of a worker", Args: cobra.ExactArgs(1),
		Long: "Bundles the JavaScript or TypeScript file with everything it imports, loads it in an isolate to check that it works, and stores\n" +
			"it. Every process of the fleet activates it at once. NAME.pinwheel.json next to the file sets limits, retries and more.\n\n" +
			"Files are read from the file's project only: the nearest directory above it with a package.json, or the root of its\n" +
			"workspaces, and node_modules above that. With --root, files are read from the named directories only.",
		Example: "  pinwheel deploy examples/webhook.js --owner acme --var WEBHOOK_SECRET=s3cret --queue JOBS=webhook",
	}, func(ctx context.Context, args []string) (err error) {
		req.Path = args[0]
		if req.Vars, err = pairs("--var", vars); err != nil {
			return err
		}
		if req.Queues, err = pairs("--queue", queues); err != nil {
			return err
		}
		return e.deploy(ctx, req)
	})
	f := c.Flags()
	f.StringVar(&req.Owner, "owner", "", "owner of the worker (required)")
	f.StringVar(&req.Name, "name", "", "name of the worker (default: the file's, without extension)")
	f.StringArrayVar(&req.Roots, "root", nil, "`DIR` from which files may be read, in place of the file's project; may be repeated")
	f.StringArrayVar(&vars, "var", nil, "`NAME=VALUE`: env.NAME is the string VALUE; may be repeated")
	f.StringArrayVar(&queues, "queue", nil, "`NAME=WORKER`: env.NAME.send() makes a task of that worker; may be repeated")
	return c
}

// pairs parses NAME=VALUE arguments.
func pairs(flag string, args []string) (map[string]string, error) {
	m := make(map[string]string, len(args))
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return nil, usage("%s %q: write it as NAME=VALUE", flag, a)
		}
		if _, twice := m[name]; twice {
			return nil, usage("%s %s is given twice", flag, name)
		}
		m[name] = value
	}
	return m, nil
}

// checkDeploy checks the command line before anything is done.
func checkDeploy(req deploy.Request) error {
	if req.Owner == "" {
		return usage("--owner is missing: it says whose worker this is")
	}
	if err := events.CheckName("owner", req.Owner); err != nil {
		return usage("--%w", err)
	}
	if req.Name != "" {
		if err := events.CheckName("worker", req.Name); err != nil {
			return usage("--name: %w", err)
		}
	}
	if !deploy.IsSource(req.Path) {
		return usage("%s: a worker is a .js, .mjs, .ts, .mts, .jsx or .tsx file", req.Path)
	}
	return nil
}

// deployTimeout limits the time of a deploy.
const deployTimeout = time.Minute

func (e *env) deploy(ctx context.Context, req deploy.Request) error {
	if err := checkDeploy(req); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	b, err := deploy.Build(ctx, req.Path, req.Roots...)
	if errors.Is(err, fs.ErrNotExist) {
		return usage("%s: no such file", req.Path)
	}
	if err != nil {
		return e.refused(req.Path, err)
	}
	for _, w := range b.Warnings {
		w.Text = "warning: " + w.Text
		fmt.Fprintln(e.err, w)
	}
	req.Bundle = b
	c, err := e.connectFor(ctx, req.Owner)
	if err != nil {
		return err
	}
	defer c.Close()
	store, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	policies, err := c.Policies(ctx)
	if err != nil {
		return err
	}
	if req.Policy, err = policies.Get(ctx, req.Owner); err != nil {
		return err
	}
	addresses, hosts := config.SplitAddresses(c.AllowedAddresses(ctx, e.cfg.AllowPrivateAddresses))
	checker, err := isolates.OpenChecker(checkHost{e.err}, addresses, hosts)
	if err != nil {
		return err
	}
	defer checker.Close()
	w, changed, err := store.Deploy(ctx, req, checker)
	if err != nil {
		return e.refused(req.Path, err)
	}
	what := "deployed"
	if !changed {
		what = "unchanged"
	} else if err := e.tellDropped(ctx, store, w); err != nil {
		return err
	}
	taken, err := c.Await(ctx, w)
	if err != nil {
		fmt.Fprintf(e.err, "pinwheel: %s is stored, but %v\n", w.Target(), err)
	}
	_, err = fmt.Fprintf(e.out, "%s %s version %s (%s), %s\n", what, w.Target(), w.Version, kindList(w.Handlers), taken)
	return err
}

// tellDropped warns of bindings that the version before w had and that w does not have.
func (e *env) tellDropped(ctx context.Context, store *deploy.Store, w *events.Worker) error {
	versions, err := store.Versions(ctx, w.Owner, w.Name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(versions, func(v *events.Worker) bool { return v.Version == w.Version })
	if i < 1 {
		return nil
	}
	before := versions[i-1]
	for _, b := range []struct {
		flag      string
		had, have map[string]string
	}{{"--var", before.Vars, w.Vars}, {"--queue", before.Queues, w.Queues}} {
		for _, name := range slices.Sorted(maps.Keys(b.had)) {
			if _, ok := b.have[name]; !ok {
				fmt.Fprintf(e.err, "warning: env.%s of version %s is gone: name it with %s at each deploy, or in the manifest\n", name, before.Version, b.flag)
			}
		}
	}
	return nil
}

// refused prints the author's mistakes without a prefix, so that editors find file, line and column at the start of a
// line.
func (e *env) refused(path string, err error) error {
	var source *deploy.SourceError
	var refused *deploy.RefusedError
	switch {
	case errors.As(err, &source):
		fmt.Fprintln(e.err, source)
	case errors.As(err, &refused):
		fmt.Fprintln(e.err, refusal(path, refused))
	default:
		return err
	}
	return silent(exitFailure)
}

// refusal formats a RefusedError with its place first, and the stack frames below it. The place comes from the first
// frame of its stack, relative to the source at path.
func refusal(path string, r *deploy.RefusedError) string {
	text := r.Target + " is refused: " + r.Failure.Message
	for line := range strings.Lines(r.Failure.Stack) {
		frame, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
		switch place := strings.TrimSuffix(frame[strings.LastIndexByte(frame, '(')+1:], ")"); {
		case !ok:
		case !strings.Contains(text, "\n") && strings.Count(place, ":") >= 2:
			text = filepath.Join(filepath.Dir(path), place) + ": " + text + "\n    at " + frame
		default:
			text += "\n    at " + frame
		}
	}
	return text
}

func kindList(kinds []events.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// checkHost is the host of a module that is only loaded. It prints the module's log lines for the author.
type checkHost struct{ out io.Writer }

// Enqueue refuses: no event runs that could enqueue a task.
func (checkHost) Enqueue(context.Context, string, string, isolates.Message) error {
	return errors.New("tasks are sent by handlers, not while the module is loaded")
}

// Log prints the line.
func (h checkHost) Log(l events.LogLine) {
	fmt.Fprintf(h.out, "%s: %s/%s: %s\n", l.Level, l.Owner, l.Worker, l.Text)
}
