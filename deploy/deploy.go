package deploy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Request says what to deploy, and as which worker.
type Request struct {
	Owner string
	// Name of the worker. Empty: the base name of the source file.
	Name string
	// Path of the source file, or a Bundle that is built already.
	Path   string
	Bundle *bundle.Bundle
	// Roots are the directories from which files are read for Path. None: its project (see bundle.Build).
	Roots []string
	// Bindings are added to those of the manifest, and replace them.
	workers.Bindings
	// Policy of the owner: a worker that asks for more than it allows is refused.
	Policy workers.Policy
	// Bounded: the policy also bounds how many workers and how much code the owner has.
	Bounded bool
	// Secrets must have the secrets that the worker names. nil: it is not checked.
	Secrets *Secrets
	// FilesStored: the owner has stored the files of the worker by itself (AddFiles), and the bundle has none. It is
	// checked that all are there.
	FilesStored bool
	// Plain names vars that look like secrets and are none, in addition to those that the manifest names so.
	Plain []string

	// DryRun does everything but storing.
	DryRun bool
	// UploadOnly stores the version without making it active.
	UploadOnly bool
	// Percent is the share of the version, beside the active one. 0 = everything.
	Percent float64
	// Steps are the shares that it gets one after the other, before it has everything. Guard says when it is bad.
	Steps []workers.Step
	Guard workers.Guard

	Tag string // what the deployer calls the version
	Note

	id    string // of this deploy
	files *uploading
}

// staged reports whether the version runs only when a deployment names it.
func (r Request) staged() bool {
	return r.UploadOnly || len(r.Steps) > 0 || r.Percent != 0 && r.Percent != 100
}

// change makes the deployment that the request asks for, of a version that is stored.
func (r Request) change(version string) Change {
	return func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		if len(r.Steps) == 0 {
			return promoted(in.Deployment, version, cmp.Or(r.Percent, 100), r.Note)
		}
		if c := in.Deployment.Candidate(); c.Version != "" {
			return in.Deployment, misfit("version %s has %v %% already: give one of the two 100 %% first", c.Version, c.Percent)
		}
		d, err := promoted(in.Deployment, version, r.Steps[0].Percent, r.Note)
		d.Rollout = &workers.Rollout{ID: in.Deployment.Number + 1, Steps: r.Steps, Guard: r.Guard,
			State: workers.RolloutRunning}
		d.Before = in.Deployment.Split
		return d, err
	}
}

// Deployed is what a deploy did.
type Deployed struct {
	Worker     *workers.Worker
	Stored     bool               // a new version was stored
	Changed    bool               // the deployment was changed
	Deployment workers.Deployment // that holds now
	Files      assetstore.Uploaded
}

// conflictTries is the most retries of a deploy because another deploy was faster.
const conflictTries = 20

// Deploy bundles, checks and stores a worker, and makes it active in the share that the request asks for, so that each
// process that watches activates it. When the newest version has the same code and manifest, no version is stored.
//
// The error is a *bundle.SourceError, a *RefusedError, a *MissingSecretsError, a *QuotaError, a *RouteTakenError or an
// *InvalidError when the author must correct something, a *resources.FullError when a bucket has no room, a
// *MissingFilesError when files that should be stored are not, and a *SupersededError when another version was deployed
// at the same time and is active. In that case and after other errors, the version may be stored; then it is not
// active.
func (s *Store) Deploy(ctx context.Context, req Request, check Checker) (Deployed, error) {
	d, err := s.deploy(ctx, req, check)
	result := "unchanged"
	var source *bundle.SourceError
	var refused *RefusedError
	var missing *MissingSecretsError
	var quota *QuotaError
	var invalid *InvalidError
	var taken *RouteTakenError
	var full *resources.FullError
	switch {
	case errors.As(err, &full), errors.As(err, &taken), errors.As(err, &source), errors.As(err, &refused),
		errors.As(err, &missing), errors.As(err, &quota), errors.As(err, &invalid):
		result = "refused"
	case err != nil:
		result = "error"
	case d.Stored || d.Changed:
		result = "changed"
	}
	s.metrics.deploys.WithLabelValues(result).Inc()
	return d, err
}

func (s *Store) deploy(ctx context.Context, req Request, check Checker) (Deployed, error) {
	var err error
	if req.Bundle == nil {
		if req.Bundle, err = bundle.Build(ctx, req.Path, req.Roots...); err != nil {
			return Deployed{}, err
		}
	}
	w, err := newWorker(req)
	if err != nil {
		return Deployed{}, err
	}
	req.id, req.files = rand.Text(), &uploading{store: s.files, refuse: s.refuseFiles, files: req.Bundle.Files,
		stored: req.FilesStored}
	d, holds, err := s.storeVersion(ctx, w, req, check)
	if err == nil {
		err = req.files.end(ctx, w)
	}
	d.Files = req.files.done
	if err != nil || req.UploadOnly || req.DryRun {
		d.Deployment = holds
		return d, err
	}
	// Again: a change of the worker may have given them up meanwhile.
	if err = s.routes.take(ctx, d.Worker, req.id, true); err != nil {
		return d, err
	}
	if d.Stored && !req.staged() { // it is active already: the record only says who did it, and why
		d.Changed = true
		d.Deployment, err = s.sign(ctx, d.Worker, req.Note)
		s.routes.settle(ctx, w.Owner, w.Name)
		return d, err
	}
	d.Deployment, d.Changed, err = s.Redeploy(ctx, w.Owner, w.Name, req.change(d.Worker.Version))
	return d, err
}

// storeVersion stores w, unless the newest version is the same. holds is the deployment before.
func (s *Store) storeVersion(ctx context.Context, w *workers.Worker, req Request,
	check Checker) (d Deployed, holds workers.Deployment, err error) {
	tries := conflicts()
	for checked := false; ; {
		kept, err := s.kept(ctx, w.Owner, w.Name)
		if err != nil {
			return d, holds, err
		}
		holds = kept.effective()
		if last := kept.last(); last != nil && last.Hash == w.Hash {
			// Damaged code is repaired by storing it again.
			if current, err := s.complete(ctx, last); !errors.Is(err, errDamaged) {
				if err == nil && !req.DryRun {
					err = req.files.upload(ctx, w)
				}
				return Deployed{Worker: current}, holds, err
			}
		}
		if w.Number, err = kept.nextNumber(); err != nil {
			return d, holds, fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
		w.Version, w.DeployedAt = version(w.Number, w.Hash), time.Now().UTC()
		if !checked {
			if err = admit(ctx, s, w, req, kept, check); err != nil {
				return d, holds, err
			}
			checked = true
		}
		e, err := s.encoded(ctx, w, req, kept)
		if err != nil {
			return d, holds, err
		}
		if req.DryRun {
			return Deployed{Worker: w}, holds, nil
		}
		if err = req.files.upload(ctx, w); err != nil {
			return d, holds, err
		}
		err = s.put(ctx, w, e, kept)
		if err == nil {
			return Deployed{Worker: w, Stored: true}, holds, nil
		}
		if wait := tries.NextBackOff(); !isConflict(err) || wait == backoff.Stop || !sleep(ctx, wait) {
			return d, holds, fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
	}
}

// admit refuses what must not be stored. It sets the handlers of w.
func admit(ctx context.Context, s *Store, w *workers.Worker, req Request, k kept, check Checker) (err error) {
	if err = req.Policy.Allow(w.Limits); err != nil {
		return &QuotaError{fmt.Sprintf("deploy %s: %v", w.Target(), err)}
	}
	if req.Bounded {
		if err = checkQuota(ctx, s, w, req.Policy, k); err != nil {
			return err
		}
	}
	if !req.UploadOnly && req.staged() { // what cannot be made active later
		in := workers.Installation{Owner: w.Owner, Name: w.Name, Deployment: k.effective()}
		if _, err = req.change(w.Version)(in, nil); err != nil {
			return fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
	}
	if err = req.Policy.MayReach(w.Bindings); err != nil {
		if fault := req.Bundle.Refuse(err); fault != nil {
			return fault
		}
		return &QuotaError{fmt.Sprintf("deploy %s: %v", w.Target(), err)}
	}
	if err = admitSources(ctx, s.cfg.CheckSources, w, req); err != nil {
		return err
	}
	if err = req.Policy.MayRoute(w.HTTP); err != nil {
		return &QuotaError{fmt.Sprintf("deploy %s: %v", w.Target(), err)}
	}
	if err = checkSecrets(ctx, req.Secrets, w); err != nil {
		return err
	}
	has, err := load(ctx, *w, check)
	if err != nil {
		return err
	}
	w.Handlers, w.Queue = has.Kinds, has.Queue
	if err = checkHandlers(w); err != nil || req.UploadOnly || req.DryRun {
		return err
	}
	return s.routes.take(ctx, w, req.id, false)
}

// sign stores the record of a deployment that holds since its version was stored.
func (s *Store) sign(ctx context.Context, w *workers.Worker, n Note) (workers.Deployment, error) {
	change := func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		d := in.Deployment
		if !only(d, w.Version) {
			return d, &SupersededError{d.Base()}
		}
		d.By, d.Message = n.By, n.Message
		return d, nil
	}
	d, _, err := s.redeploy(ctx, w.Owner, w.Name, change, func(*workers.Deployment) {})
	return d, err
}

// newWorker makes the worker that req asks for, of its bundle. It has no number yet.
func newWorker(req Request) (*workers.Worker, error) {
	b, name := req.Bundle, req.Name
	if name == "" {
		if name = b.WorkerName(); !events.ValidName(name) {
			return nil, fmt.Errorf("%w; give the worker another name than its file's", events.CheckName("worker", name))
		}
	}
	if err := checkTarget(req.Owner, name); err != nil {
		return nil, &InvalidError{err}
	}
	if err := manifest.CheckPlain(req.Vars, slices.Concat(b.Plain, req.Plain)); err != nil {
		return nil, &InvalidError{err}
	}
	final := *b
	final.Bindings = b.Bindings.With(req.Bindings)
	if err := manifest.Validate(final.Spec); err != nil {
		return nil, &InvalidError{err}
	}
	switch {
	case final.Assets == nil || b.Files != nil:
	case !req.FilesStored:
		return nil, &InvalidError{errors.New("assets: the files did not come with the bundle")}
	case final.Assets.Files == "":
		return nil, &InvalidError{errors.New("assets.files is missing: it is the SHA-256 of the list of files, which is stored first")}
	}
	if err := bundle.CheckModules(b.Modules); err != nil {
		return nil, &InvalidError{err}
	}
	final.Mode = final.Mode.OrDefault()
	hash, err := final.Hash()
	if err != nil {
		return nil, err
	}
	return &workers.Worker{
		Owner: req.Owner, Name: name, Hash: hash, Spec: final.Spec, Code: b.Code, File: b.File, SourceMap: b.SourceMap,
		Modules: b.Modules, Tag: req.Tag, Message: req.Message,
	}, nil
}

// put stores w as e, if the bucket still has k.
func (s *Store) put(ctx context.Context, w *workers.Worker, e encodedVersion, k kept) error {
	if err := k.outlives(); err != nil {
		return err
	}
	// The object comes first: a record must never refer to a missing object.
	if e.object != nil {
		if _, err := s.objects.PutBytes(ctx, objectName(w.Owner, w.Name, w.Hash), e.object); err != nil {
			err = resources.Stranger(err, "$O."+s.cfg.Objects+".>")
			return fmt.Errorf("store bundle: %w", s.full(ctx, s.cfg.Objects, err))
		}
	}
	if err := putRecord(ctx, s, w, e.text, len(e.object), k.revision); err != nil {
		if resources.IsFull(err) {
			s.deleteObjects(ctx, []*record{e.stored}, k.records)
		}
		err = resources.Stranger(err, s.cfg.subject(w.Owner, w.Name))
		return fmt.Errorf("store record: %w", s.full(ctx, s.cfg.Bucket, err))
	}
	if k.entries >= History && len(k.records) >= History {
		outlived := k.records[:len(k.records)-History+1]
		s.deleteObjects(ctx, outlived, append(k.records[len(outlived):], e.stored))
		sweep(ctx, s, w.Owner, outlived)
	}
	return nil
}

// putRecord stores a record. Where it refers to an object or to modules, it does what the bucket's Update does, and
// adds their sizes.
func putRecord(ctx context.Context, s *Store, w *workers.Worker, text []byte, object int, revision uint64) error {
	if object == 0 && len(w.Modules) == 0 {
		_, err := s.kv.Update(ctx, key(w.Owner, w.Name), text, revision)
		return err
	}
	m := nats.NewMsg(s.cfg.subject(w.Owner, w.Name))
	m.Data = text
	if object > 0 {
		m.Header.Set(headerObjectBytes, strconv.Itoa(object))
	}
	if len(w.Modules) > 0 {
		m.Header.Set(headerModules, modulesHeader(w.Modules))
	}
	_, err := s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision))
	return err
}

// isConflict reports whether another deploy was first.
func isConflict(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) ||
		errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// sleep waits for d, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
