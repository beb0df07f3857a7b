package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// UploadedBundle names a bundle that was stored in parts, as a body of its owner: the code, then the source map.
type UploadedBundle struct {
	ID        string `json:"id"`
	Parts     int    `json:"parts"`
	Code      int    `json:"code"`      // bytes
	SourceMap int    `json:"sourceMap"` // bytes
	SHA256    string `json:"sha256"`    // of all bytes, in hex

	data []byte // of a request that this program handles: nothing is stored in parts
}

// Inline makes b a bundle in a request that this program handles.
func (b *UploadedBundle) Inline(data []byte) { b.ID, b.Parts, b.data = inlineID, 1, data }

// DeployVersion deploys a bundle. Number, time and hash of the version are the server's.
type DeployVersion struct {
	WorkerName
	File   string         `json:"file"` // name of the bundle in stacks: NAME.js
	Spec   workers.Spec   `json:"spec"` // as a manifest has it
	Bundle UploadedBundle `json:"bundle"`
	Plain  []string       `json:"plain" most:"1000"` // vars that look like secrets and are none

	// Modules are those of WebAssembly, in the order of their hashes. Their bytes are files that the owner has stored.
	Modules []deploy.ModuleRef `json:"modules" most:"64"`

	DryRun     bool           `json:"dryRun"`
	UploadOnly bool           `json:"uploadOnly"`
	Percent    float64        `json:"percent"` // 0: everything
	Steps      []workers.Step `json:"steps"`
	Guard      workers.Guard  `json:"guard"`

	Tag string `json:"tag"`
	Note
	asker
}

// DeployedVersion is what a deploy did.
type DeployedVersion struct {
	Changed    bool               `json:"changed"` // the deployment is new
	Deployment workers.Deployment `json:"deployment"`
	DryRun     bool               `json:"dryRun,omitempty"`
	Handlers   []events.Kind      `json:"handlers"`
	Number     int                `json:"number"`
	Output     []string           `json:"output"` // what the module wrote while it was loaded
	Stored     bool               `json:"stored"` // the version is new
	Version    string             `json:"version"`
	Warnings   []string           `json:"warnings"` // what the author should know
	Worker     string             `json:"worker"`
}

// recorded is what the audit stream tells of a deploy.
func (d DeployedVersion) recorded() any {
	if d.DryRun || !d.Stored && !d.Changed {
		return nil
	}
	return map[string]any{"worker": d.Worker, "version": d.Version, "percent": d.Deployment.PercentOf(d.Version)}
}

// check checks the fields that the store does not check, or not before it reads the bundle.
func (r DeployVersion) check() error {
	b := r.Bundle
	switch {
	case events.CheckName("id of a body", b.ID) != nil:
		return wrongField("bundle.id", " %.80q: it is the id of a body that was stored in parts", b.ID)
	case b.Parts < 1 || b.Parts > maxBundleParts:
		return wrongField("bundle.parts", " is %d: it is 1 to %d", b.Parts, maxBundleParts)
	case b.Code < 1 || b.Code > bundle.MaxBundle:
		return wrongField("bundle.code", " is %d: it is 1 to %d bytes", b.Code, bundle.MaxBundle)
	case b.SourceMap < 0 || b.SourceMap > bundle.MaxSourceMap:
		return wrongField("bundle.sourceMap", " is %d: it is 0 to %d bytes", b.SourceMap, bundle.MaxSourceMap)
	case len(b.SHA256) != hex.EncodedLen(sha256.Size):
		return wrongField("bundle.sha256", " %.80q: it is 64 hex digits", b.SHA256)
	case r.UploadOnly && (r.Percent != 0 || len(r.Steps) > 0), r.Percent != 0 && len(r.Steps) > 0:
		return refused("uploadOnly, percent and steps: choose one")
	case r.Guard != (workers.Guard{}) && len(r.Steps) == 0:
		return wrongField("guard", " needs steps: it is checked between them")
	}
	if r.Percent != 0 {
		if err := workers.CheckPercent(r.Percent); err != nil {
			return wrongName("percent", err)
		}
	}
	if len(r.Steps) > 0 {
		rollout := workers.Rollout{ID: 1, Steps: r.Steps, Guard: r.Guard, State: workers.RolloutRunning}
		if err := rollout.Validate(); err != nil {
			return refused("%v", err)
		}
	}
	for _, text := range []struct {
		field, value string
		most         int
	}{{"tag", r.Tag, workers.MaxTag}, {"message", r.Message, events.MaxNote}, {"by", r.By, events.MaxNote}} {
		if err := events.CheckText(text.field, text.value, text.most); err != nil {
			return wrongName(text.field, err)
		}
	}
	return nil
}

// deploys are what a process needs to deploy uploaded bundles.
type deploys struct {
	workers  *deploy.Store
	policies *deploy.Policies
	secrets  *deploy.Secrets
	process  Process
	bodies   *bodies
	uploads  *uploads
	bans     checkBans // of modules and owners
	log      zerolog.Logger
}

// deploy deploys a bundle for its owner.
func (d *deploys) deploy(ctx context.Context, r DeployVersion) (DeployedVersion, error) {
	owner, name, err := r.parse()
	if err != nil {
		return DeployedVersion{}, err
	}
	if err := r.check(); err != nil {
		return DeployedVersion{}, err
	}
	if err := d.uploads.enter(owner, time.Now()); err != nil {
		return DeployedVersion{}, err
	}
	check := &moduleCheck{process: d.process, unlimited: r.by == "", bans: &d.bans}
	defer func() { d.uploads.leave(owner, check.took, time.Now()) }()
	answer, err := d.store(ctx, owner, name, r, check)
	if again := codeOf(err); err == nil || again != http.StatusServiceUnavailable &&
		again != http.StatusInternalServerError {
		d.bodies.drop(ctx, owner, r.Bundle.ID) // the parts are not needed any more
	}
	return answer, err
}

// store reads a bundle and has the store deploy it, as a command of the fleet's user does.
func (d *deploys) store(ctx context.Context, owner, name string, r DeployVersion,
	check *moduleCheck) (DeployedVersion, error) {
	data, err := r.Bundle.read(ctx, d.bodies, owner)
	if err != nil {
		return DeployedVersion{}, err
	}
	b := &bundle.Bundle{Code: string(data[:r.Bundle.Code]), File: r.File, SourceMap: data[r.Bundle.Code:], Spec: r.Spec,
		Plain: r.Plain}
	if err := bundle.Check(b); err != nil {
		return DeployedVersion{}, &deploy.InvalidError{Err: err}
	}
	if b.Modules, err = deploy.ReadModules(ctx, d.workers, owner, r.Modules); err != nil {
		return DeployedVersion{}, err
	}
	policy, err := d.policies.Get(ctx, owner)
	if err != nil {
		return DeployedVersion{}, err
	}
	done, err := d.workers.Deploy(ctx, deploy.Request{
		Owner: owner, Name: name, Bundle: b, Bindings: r.Spec.Bindings, Policy: policy, Bounded: r.by != "",
		FilesStored: true, Secrets: d.secrets, DryRun: r.DryRun, UploadOnly: r.UploadOnly, Percent: r.Percent,
		Steps: r.Steps, Guard: r.Guard, Tag: r.Tag, Note: deploy.Note(r.Note),
	}, check)
	if err != nil {
		return DeployedVersion{}, err
	}
	answer := DeployedVersion{
		Changed: done.Changed, Deployment: done.Deployment, DryRun: r.DryRun, Handlers: done.Worker.Handlers,
		Number: done.Worker.Number, Stored: done.Stored, Version: done.Worker.Version,
		Output: check.output(), Warnings: []string{}, Worker: done.Worker.Target(),
	}
	if done.Stored {
		versions, err := d.workers.Versions(ctx, owner, name)
		if err != nil { // it is deployed: that the versions cannot be compared is no failure
			d.log.Debug().Err(err).Str("worker", answer.Worker).Msg("bindings of two versions not compared")
		}
		answer.Warnings = append(answer.Warnings, DroppedBindings(versions, done.Worker)...)
	}
	return answer, nil
}

// read reads the bundle.
func (b UploadedBundle) read(ctx context.Context, from *bodies, owner string) ([]byte, error) {
	data, err := from.read(ctx, owner,
		parts{"bundle", "code and sourceMap say", b.ID, b.Parts, b.Code + b.SourceMap, b.data})
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); !strings.EqualFold(hex.EncodeToString(sum[:]), b.SHA256) {
		return nil, refused("bundle %s has the SHA-256 %x, and not the one of bundle.sha256", b.ID, sum)
	}
	return data, nil
}

// DroppedBindings warns of bindings that the version before w had and that w does not have. versions are those of the
// worker, oldest first.
func DroppedBindings(versions []*workers.Worker, w *workers.Worker) (warnings []string) {
	i := slices.IndexFunc(versions, func(v *workers.Worker) bool { return v.Version == w.Version })
	if i < 1 {
		return nil
	}
	before, vars := versions[i-1], w.AllVars()
	for _, b := range before.Env() {
		where := "in the manifest"
		_, there := w.Find(b.Kind, b.Name)
		switch b.Kind {
		case workers.BindingVar, workers.BindingJSON:
			_, there = vars[b.Name]
			where = "with --var at each deploy, or in the manifest"
		case workers.BindingQueue:
			where = "with --queue at each deploy, or in the manifest"
		}
		if !there {
			warnings = append(warnings, fmt.Sprintf("env.%s of version %s is gone: name it %s", b.Name, before.Version, where))
		}
	}
	return warnings
}
