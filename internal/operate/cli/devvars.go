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
	"syscall"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/dotenv"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// Files with the secrets of workers of `pinwheel dev`, beside their sources. As with wrangler, the others are not read
// when there is a .dev.vars; of the others the later one wins.
const devVarsFile = ".dev.vars"

var dotEnvFiles = []string{".env", ".env.local"}

// devVars reads these files in dir. candidates are all that might be there.
func devVars(dir string) (values map[string]string, candidates []string, err error) {
	for _, name := range append([]string{devVarsFile}, dotEnvFiles...) {
		path := filepath.Join(dir, name)
		candidates = append(candidates, path)
	}
	vars, err := readVars(candidates[0])
	if err == nil {
		values, err = checkDevVars(vars, func(string) string { return candidates[0] })
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return values, candidates, err
	}
	all, from := &dotenv.Vars{}, map[string]string{}
	for _, path := range candidates[1:] {
		more, err := readVars(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, candidates, err
		}
		all.Add(more)
		for name := range more.Map() {
			from[name] = path
		}
	}
	if err := all.Expand(); err != nil {
		return nil, candidates, fmt.Errorf("%s: %w", candidates[1], err)
	}
	values, err = checkDevVars(all, func(name string) string { return from[name] })
	return values, candidates, err
}

// readFile reads a file beside a source. It follows no link: the author of the source may be someone else, and his
// workers must not get values from other places of this machine.
func readFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return "", fmt.Errorf("%s is a link: a file with secrets is read only where it is", path)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, dotenv.MaxFile+1))
	return string(text), err
}

// readVars reads one file. The error has file and line, and does not quote the line.
func readVars(path string) (*dotenv.Vars, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	vars, err := dotenv.Parse(text)
	var wrong *dotenv.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s:%d:1: %w", path, wrong.Line, err)
	}
	return vars, err
}

// checkDevVars returns the values. Each can be a secret, or is empty. from says which file has a name.
func checkDevVars(vars *dotenv.Vars, from func(name string) string) (map[string]string, error) {
	values := vars.Map()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		err := events.CheckEnvName(name)
		if err == nil && values[name] != "" {
			err = secrets.Value(values[name]).Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", from(name), name, err)
		}
	}
	return values, nil
}

// setDevVars makes the values beside the source secrets of its worker, and names them in the bundle. They replace vars
// of the manifest. A --var wins over them.
func (d *dev) setDevVars(ctx context.Context, path string, b *bundle.Bundle) error {
	values, candidates, err := devVars(sourceDir(path))
	for _, c := range candidates {
		if abs, err := filepath.Abs(c); err == nil {
			d.inputs[path] = append(d.inputs[path], abs)
		}
	}
	if err != nil {
		return err
	}
	b.Vars, b.JSON = maps.Clone(b.Vars), maps.Clone(b.JSON)
	for name, value := range values {
		if _, given := d.vars[name]; given {
			delete(values, name)
			continue
		}
		delete(b.Vars, name)
		delete(b.JSON, name)
		b.Secrets = slices.DeleteFunc(slices.Clone(b.Secrets), func(s string) bool { return s == name })
		if value != "" {
			b.Secrets = append(b.Secrets, name)
			continue
		}
		if b.Vars == nil {
			b.Vars = map[string]string{}
		}
		b.Vars[name] = "" // a secret has a value
		delete(values, name)
	}
	slices.Sort(b.Secrets)
	return d.storeDevVars(ctx, b.Name, values)
}

// sourceDir is the directory with the files of a source that are no code.
func sourceDir(path string) string {
	if bundle.IsSource(path) {
		return filepath.Dir(path)
	}
	return path
}

// storeDevVars stores what has changed for a worker since the deploy before.
func (d *dev) storeDevVars(ctx context.Context, worker string, values map[string]string) error {
	before := d.stored[worker]
	for name, value := range values {
		if was, ok := before[name]; ok && was == value {
			continue
		}
		n := secrets.Name{Owner: devOwner, Worker: worker, Name: name}
		sealed, err := secrets.Seal(n, secrets.Value(value), d.recipient)
		if err != nil {
			return err
		}
		if err := d.secrets.Put(ctx, n, sealed); err != nil {
			return err
		}
	}
	for name := range before {
		if _, ok := values[name]; ok {
			continue
		}
		n := secrets.Name{Owner: devOwner, Worker: worker, Name: name}
		if err := d.secrets.Remove(ctx, n); err != nil && !errors.Is(err, deploy.ErrNoSecret) {
			return err
		}
	}
	d.stored[worker] = values
	return nil
}

// openSecrets opens the store of secrets, and reads to whom they are encrypted.
func (d *dev) openSecrets(ctx context.Context) error {
	cfg := d.fleet.Config()
	ids, _, err := secrets.Load(cfg.SecretsKey)
	if err != nil {
		return err
	}
	d.recipient = ids.Recipient()
	js, err := jetstream.New(d.fleet.Conn())
	if err != nil {
		return err
	}
	d.secrets, err = deploy.OpenSecrets(ctx, js, inventory.Deploy(cfg))
	return err
}
