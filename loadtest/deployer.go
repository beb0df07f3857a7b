package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

//go:embed workers/*.mjs workers/*.json
var workerFiles embed.FS

// bucket is the bucket in which the fleet stores workers (docs/guides/operate.md).
const bucket = "PINWHEEL_WORKERS"

// deployer deploys workers. It deploys the first of a kind with pinwheel deploy. It keeps the stored record, and puts
// it into the bucket for all other owners and in later runs. Ten thousand deploys would be ten thousand processes with
// a V8 each.
type deployer struct {
	binary  string
	dir     string            // for sources
	vars    map[string]string // of all workers
	records map[string]map[string]json.RawMessage
}

func newDeployer(binary, dir string, vars map[string]string) *deployer {
	return &deployer{binary, dir, vars, map[string]map[string]json.RawMessage{}}
}

// deploy deploys a worker of every part for each of the owners, and returns the number of workers.
func (s *deployer) deploy(ctx context.Context, url string, js jetstream.JetStream, parts []part, owner func(int) string,
	owners int) (int, error) {
	total, seen := 0, map[string]bool{}
	for _, p := range parts {
		if seen[p.name()] {
			continue
		}
		seen[p.name()] = true
		record := s.records[p.deployed()]
		if record == nil {
			var err error
			if record, err = s.first(ctx, url, js, p, owner(0)); err != nil {
				return 0, err
			}
			s.records[p.deployed()] = record
		}
		if err := copyRecord(ctx, js, record, p.name(), owner, owners); err != nil {
			return 0, fmt.Errorf("deploy %s: %w", p.name(), err)
		}
		total += owners
	}
	return total, nil
}

// first deploys p with the command, as any user would, and returns the record that the fleet stored.
func (s *deployer) first(ctx context.Context, url string, js jetstream.JetStream, p part,
	owner string) (map[string]json.RawMessage, error) {
	text, err := workerFiles.ReadFile("workers/" + p.worker)
	if err != nil {
		return nil, err
	}
	if p.mode != "" {
		text = append([]byte("// @mode "+string(p.mode)+"\n"), text...)
	}
	files := map[string][]byte{p.deployed() + ".mjs": text}
	base, _, _ := strings.Cut(p.worker, ".")
	if manifest, err := workerFiles.ReadFile("workers/" + base + ".pinwheel.json"); err == nil {
		files[p.deployed()+".pinwheel.json"] = manifest
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	args := []string{"deploy", filepath.Join(s.dir, p.deployed()+".mjs"), "--owner", owner}
	for name, value := range s.vars {
		args = append(args, "--var", name+"="+value)
	}
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = append(os.Environ(), "PINWHEEL_NATS_URL="+url)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pinwheel deploy %s: %w\n%s", p.worker, err, out)
	}
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, err
	}
	entry, err := kv.Get(ctx, owner+"."+p.deployed())
	if err != nil {
		return nil, err
	}
	var record map[string]json.RawMessage
	return record, json.Unmarshal(entry.Value(), &record)
}

// copyRecord stores the record for every owner that does not have it.
func copyRecord(ctx context.Context, js jetstream.JetStream, record map[string]json.RawMessage, worker string,
	owner func(int) string, owners int) error {
	for i := range owners {
		// The hash in it covers code and manifest, so it is right for every owner.
		record["owner"], _ = json.Marshal(owner(i)) // a string: no error
		record["name"], _ = json.Marshal(worker)
		text, err := json.Marshal(record)
		if err != nil {
			return err
		}
		_, err = js.PublishAsync("$KV."+bucket+"."+owner(i)+"."+worker, text, jetstream.WithExpectLastSequencePerSubject(0),
			jetstream.WithStallWait(publishPatience))
		if err != nil {
			return err
		}
	}
	return awaitStored(ctx, js, "workers")
}

// awaitStored waits for the acknowledgements of all that was published asynchronously. what names it in an error.
func awaitStored(ctx context.Context, js jetstream.JetStream, what string) error {
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("not all %s are stored: %w", what, ctx.Err())
	}
}
