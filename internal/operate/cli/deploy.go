package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// deployer is the command that deploys.
type deployer struct{ *env }

func (e deployer) root() *cobra.Command {
	var req deploy.Request
	var vars, queues []string
	var share deployFlags
	var install bool
	c := e.command(cobra.Command{
		Use: "deploy PATH… --owner OWNER", Short: "Make source files or directories the active versions of workers", Args: cobra.MinimumNArgs(1),
		Long: "Bundles the JavaScript or TypeScript file with everything it imports, loads it in an isolate to check that it works, and stores\n" +
			"it. Every process of the fleet activates it at once; --percent, --gradual and --upload-only give it a share, or none.\n" +
			"NAME.pinwheel.json next to the file sets limits, retries and more.\n\n" +
			"In a directory, the manifest names the file: pinwheel.json, pinwheel.jsonc, pinwheel.yaml, Buntime's manifest.yaml, wrangler's\n" +
			"wrangler.jsonc, .json or .toml, or the key pinwheel in package.json. Without one it is index.ts, index.js, src/index.ts or\n" +
			"src/index.js. What a manifest says and Pinwheel cannot keep is refused.\n\n" +
			"Files are read from the project only: the nearest directory from the file or the directory upwards with a package.json, or the\n" +
			"root of its workspaces, and node_modules above that. With --root, files are read from the named directories only.\n\n" +
			"With several paths all are bundled before the first is deployed. They are deployed in their order; if one is refused, those after\n" +
			"it are not deployed, and the command says which these are.\n\n" +
			"With PINWHEEL_OWNER set, this command bundles and the fleet does the rest: the user is this owner's, and --owner is not needed.",
		Example: "  pinwheel deploy examples/webhook.js --owner acme --var GREETING=hello --queue JOBS=webhook\n" +
			"  pinwheel deploy shop --owner acme --install\n" +
			"  pinwheel deploy shop orders mail.ts --owner acme",
	}, func(ctx context.Context, args []string) (err error) {
		if err := e.ownerOf(&req); err != nil {
			return err
		}
		if err := checkDeploy(req, args); err != nil {
			return err
		}
		if err := e.installAll(ctx, install, req.Roots, args); err != nil {
			return err
		}
		if req.Vars, err = pairs("--var", vars); err != nil {
			return err
		}
		if req.Queues, err = pairs("--queue", queues); err != nil {
			return err
		}
		if err = share.complete(&req); err != nil {
			return err
		}
		return e.deployAll(ctx, req, share, args)
	})
	c.Flags().StringArrayVar(&req.Plain, "plain", nil, "`NAME` of a --var that looks like a secret and is none; may be repeated")
	f := c.Flags()
	f.StringVar(&req.Owner, "owner", "", "owner of the worker (required, unless PINWHEEL_OWNER is set)")
	f.StringVar(&req.Name, "name", "", "name of the worker (default: the manifest's, else that of the directory, or of the file without extension)")
	f.BoolVar(&install, "install", false, "first install the packages of the directory, as its lock file has them and without running their scripts")
	f.StringArrayVar(&req.Roots, "root", nil, "`DIR` from which files may be read, in place of the file's project; may be repeated")
	f.StringArrayVar(&vars, "var", nil, "`NAME=VALUE`: env.NAME is the string VALUE; may be repeated")
	f.StringArrayVar(&queues, "queue", nil, "`NAME=WORKER`: env.NAME.send() makes a task of that worker; may be repeated")
	share.flags(f)
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

// checkVars refuses a --var that looks like a secret.
func checkVars(vars map[string]string, plain []string) error {
	var found, quoted []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if manifest.LooksSecret(name) && !slices.Contains(plain, name) {
			found, quoted = append(found, name), append(quoted, fmt.Sprintf("%q", name))
		}
	}
	if len(found) == 0 {
		return nil
	}
	looks, one := "looks like a secret", "it one"
	if len(found) > 1 {
		looks, one = "look like secrets", "them secrets"
	}
	return usage("--var %s %s: make %s (\"secrets\": [%s] in the manifest, and 'pinwheel secrets set', or .dev.vars for 'pinwheel dev'), or add --plain %s",
		strings.Join(found, ", "), looks, one, strings.Join(quoted, ", "), strings.Join(found, " --plain "))
}

// checkDeploy checks the command line before anything is done.
func checkDeploy(req deploy.Request, paths []string) error {
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
		if len(paths) > 1 {
			return usage("--name is for one worker, and these are %d: give them names in their manifests", len(paths))
		}
	}
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return err
		}
	}
	return nil
}

// checkPath refuses what can be no worker because of what it is.
func checkPath(path string) error {
	info, err := os.Stat(path)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case gone && (bundle.IsSource(path) || filepath.Ext(path) == ""):
		return usage("%s: no such file or directory", path)
	case err == nil && info.IsDir(), bundle.IsSource(path):
		return nil
	}
	return usage("%s: a worker is a .js, .mjs, .ts, .mts, .jsx or .tsx file, or a directory", path)
}

// deployTimeout limits the time of a deploy without files.
const deployTimeout = time.Minute

// timeFor limits the time of a deploy: a second more for each megabyte of its files, which are compressed and stored.
func timeFor(b *bundle.Bundle) time.Duration {
	bytes := int64(0)
	for _, m := range b.Modules {
		bytes += int64(len(m.Code))
	}
	if b.Files != nil {
		bytes += b.Files.Total
	}
	return deployTimeout + time.Duration(bytes>>20)*time.Second
}

// deployAll bundles what is at paths, and deploys one after the other.
func (e deployer) deployAll(ctx context.Context, req deploy.Request, share deployFlags, paths []string) error {
	list, of := make([]deploy.Request, len(paths)), map[string]string{}
	for i, path := range paths {
		list[i] = req
		list[i].Path = path
		if err := e.bundle(ctx, &list[i]); err != nil {
			return err
		}
		if other, twice := of[list[i].Name]; twice {
			return usage("%w", duplicateError(other, path, list[i].Name))
		}
		of[list[i].Name] = path
	}
	return e.withFleet(ctx, func(c *control.Client) error {
		for i, one := range list {
			limited, cancel := context.WithTimeout(ctx, timeFor(one.Bundle))
			err := e.send(ctx, limited, c, one, share)
			cancel()
			if err != nil {
				if left := paths[i+1:]; len(left) > 0 {
					fmt.Fprintf(e.Err, "pinwheel: not deployed: %s\n", strings.Join(left, ", "))
				}
				return err
			}
		}
		return nil
	})
}

// bundle bundles what is at the path of a request, and names it.
func (e deployer) bundle(ctx context.Context, req *deploy.Request) error {
	err := e.During("bundles "+req.Path, func() (err error) {
		req.Bundle, err = bundle.Build(ctx, req.Path, req.Roots...)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return usage("%s: no such file", req.Path)
	}
	if err != nil {
		return e.refused(req.Path, err)
	}
	printWarnings(e.Err, req.Bundle)
	if err := checkVars(req.Vars, slices.Concat(req.Bundle.Plain, req.Plain)); err != nil {
		return err
	}
	return nameIt(req)
}

// send has the fleet check and store what this command has bundled. all is the context of the whole command, and ctx
// that of the deploy: a rollout takes longer.
func (e deployer) send(all, ctx context.Context, c *control.Client, req deploy.Request, share deployFlags) error {
	here, err := c.HandlesHere(ctx, req.Owner)
	if err != nil {
		return err
	}
	var up upload // none here
	if !here {
		if up, err = e.openUpload(req.Owner); err != nil {
			return err
		}
		defer up.close()
	}
	var d control.DeployedVersion
	var files control.StoredFiles
	err = e.During(fmt.Sprintf("deploys %s/%s", req.Owner, req.Name), func() (err error) {
		d, files, err = deployWithFiles(ctx, c, up.Client, req)
		return err
	})
	if err != nil {
		return e.refused(req.Bundle.Source, placed(req, err))
	}
	tellFiles(e.Err, files.Files, files.Bytes)
	for _, line := range d.Output {
		fmt.Fprintln(e.Err, line)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(e.Err, "warning: %s\n", warning)
	}
	return e.tellDeployed(all, c, d, share)
}

// placed returns the error of a deploy as that of its source, if it is one.
func placed(req deploy.Request, err error) error {
	var refused *control.Error
	if !errors.As(err, &refused) {
		return err
	}
	if refused.Module != nil {
		return refused.Module
	}
	text := strings.TrimPrefix(refused.Text, "deploy "+req.Owner+"/"+req.Name+": ")
	if fault := req.Bundle.Place(text); fault != nil {
		return fault
	}
	return err
}

// ownerOf sets the owner of a deploy: with PINWHEEL_OWNER it is that owner.
func (e deployer) ownerOf(req *deploy.Request) error {
	switch {
	case !e.isOwner():
		return nil
	case req.Owner != "" && req.Owner != e.cfg.Owner:
		return usage("--owner is %s, and PINWHEEL_OWNER says that this is owner %s", req.Owner, e.cfg.Owner)
	}
	req.Owner = e.cfg.Owner
	return nil
}

// tellFiles prints which files a deploy has stored.
func tellFiles(out io.Writer, files int, bytes int64) {
	if files > 0 {
		fmt.Fprintf(out, "stored %s, %d bytes\n", counted(files, "file"), bytes)
	}
}

// nameIt gives a worker the name of its bundle, if the command line gives it none.
func nameIt(req *deploy.Request) error {
	if req.Name != "" {
		return nil
	}
	if err := events.CheckName("worker", req.Bundle.Name); err != nil {
		return usage("%w; give it a name in the manifest, or with --name", err)
	}
	req.Name = req.Bundle.Name
	return nil
}

// printWarnings prints what the author should know of a bundle that works.
func printWarnings(out io.Writer, b *bundle.Bundle) {
	for _, w := range b.Warnings {
		w.Text = "warning: " + w.Text
		fmt.Fprintln(out, w)
	}
	for _, n := range b.Notes {
		n.Text = "note: " + n.Text
		fmt.Fprintln(out, n)
	}
}

// refused prints the author's mistakes without a prefix, so that editors find file, line and column at the start of a
// line.
func (e deployer) refused(path string, err error) error {
	var source *bundle.SourceError
	var refused *deploy.RefusedError
	var faults []bundle.Diagnostic
	switch {
	case errors.As(err, &source):
		fmt.Fprintln(e.Err, source)
		faults = source.Diagnostics
	case errors.As(err, &refused):
		text, fault := refusal(path, refused)
		fmt.Fprintln(e.Err, text)
		faults = []bundle.Diagnostic{fault}
	default:
		return err
	}
	if inActions() {
		annotate(e.Err, faults)
	}
	return silent(exitFailure)
}

// refusal formats a RefusedError with its place first, and the stack frames below it. The place comes from the first
// frame of its stack, relative to the source at path. fault has the place, or the source as a whole.
func refusal(path string, r *deploy.RefusedError) (text string, fault bundle.Diagnostic) {
	text = r.Target + " is refused: " + r.Failure.Message
	fault = bundle.Diagnostic{File: path, Text: text}
	placed := false
	for line := range strings.Lines(r.Failure.Stack) {
		frame, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
		switch place := strings.TrimSuffix(frame[strings.LastIndexByte(frame, '(')+1:], ")"); {
		case !ok:
		case !placed && strings.Count(place, ":") >= 2:
			placed = true
			place = filepath.Join(filepath.Dir(path), place)
			text = place + ": " + text + "\n    at " + frame
			parts := strings.Split(place, ":")
			n := len(parts)
			line, lineErr := strconv.Atoi(parts[n-2])
			column, columnErr := strconv.Atoi(parts[n-1])
			if lineErr == nil && columnErr == nil {
				fault.File, fault.Line, fault.Column = strings.Join(parts[:n-2], ":"), line, column
			}
		default:
			text += "\n    at " + frame
		}
	}
	return text, fault
}

func kindList(kinds []events.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// checkHost is the host of a module that is only loaded. It passes on the module's log lines.
type checkHost struct{ log func(events.LogLine) }

// Enqueue refuses: no event runs that could enqueue a task.
func (checkHost) Enqueue(context.Context, string, string, []isolates.Message) error {
	return errors.New("tasks are sent by handlers, not while the module is loaded")
}

// Call refuses: no event runs that could call a binding.
func (checkHost) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, errors.New("bindings are called by handlers, not while the module is loaded")
}

// Log passes the line on.
func (h checkHost) Log(l events.LogLine) { h.log(l) }
