package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// deployOwner sets the owner of a deploy: at the owner's door it is the owner of the door.
func deployOwner(e *env, req *deploy.Request) error {
	switch {
	case !atDoor(e):
		return nil
	case req.Owner != "" && req.Owner != e.cfg.Owner:
		return usage("--owner is %s, and PINWHEEL_OWNER says that this is owner %s", req.Owner, e.cfg.Owner)
	}
	req.Owner = e.cfg.Owner
	return nil
}

// deployAtDoor has the fleet check and store what this command has bundled. all is the context of the whole command,
// and ctx that of the deploy.
func (e deployer) deployAtDoor(all, ctx context.Context, req deploy.Request, share deployFlags) error {
	return withDoor(e.env, func(c *control.Client) error {
		upload, err := openUpload(e.env)
		if err != nil {
			return err
		}
		defer upload.close()
		r, err := uploadBundle(ctx, upload.Client, req)
		if err != nil {
			return err
		}
		d, files, err := deployWithFiles(ctx, c, upload.Client, req, r)
		var refused *control.Error
		if errors.As(err, &refused) && refused.Module != nil {
			return e.refused(req.Bundle.Source, refused.Module)
		}
		if err != nil {
			return err
		}
		tellFiles(e.err, files.Files, files.Bytes)
		for _, line := range d.Output {
			fmt.Fprintln(e.err, line)
		}
		for _, warning := range d.Warnings {
			fmt.Fprintf(e.err, "warning: %s\n", warning)
		}
		w := &events.Worker{Owner: req.Owner, Name: req.Name, Version: d.Version, Number: d.Number, Handlers: d.Handlers}
		return e.tellDeployed(all, doorWatch{c}, deploy.Deployed{Worker: w, Stored: d.Stored, Changed: d.Changed, Deployment: d.Deployment}, share)
	})
}

// upload is the connection on which an owner stores bodies in parts.
type upload struct {
	*client.Client
	close func()
}

func openUpload(e *env) (upload, error) {
	nc, err := e.dial(e.cfg.Owner)
	if err != nil {
		return upload{}, err
	}
	c, err := client.New(nc, client.Prefix(e.cfg.Prefix))
	if err != nil {
		nc.Close()
		return upload{}, err
	}
	return upload{c, func() { _ = c.Close(); nc.Close() }}, nil
}

// uploadBundle stores a bundle in parts, and returns the request to deploy it.
func uploadBundle(ctx context.Context, uploader *client.Client, req deploy.Request) (r control.DeployVersion, err error) {
	b := req.Bundle
	sum := sha256.New()
	bundle := io.TeeReader(io.MultiReader(strings.NewReader(b.Code), bytes.NewReader(b.SourceMap)), sum)
	stored, err := uploader.Store(ctx, req.Owner, bundle)
	if err != nil {
		return r, err
	}
	spec := b.Spec
	spec.Bindings = b.Bindings.With(req.Bindings)
	return control.DeployVersion{
		WorkerName: control.WorkerName{Worker: req.Owner + "/" + req.Name}, File: b.File, Spec: spec, Plain: slices.Concat(b.Plain, req.Plain),
		Bundle: control.UploadedBundle{
			ID: stored.ID, Parts: stored.Parts, Code: len(b.Code), SourceMap: len(b.SourceMap), SHA256: hex.EncodeToString(sum.Sum(nil)),
		},
		DryRun: req.DryRun, UploadOnly: req.UploadOnly, Percent: req.Percent, Steps: req.Steps, Guard: req.Guard, Tag: req.Tag, Note: control.Note(req.Note),
	}, nil
}

// watch is how a command sees what becomes of a deployment.
type watch interface {
	// Await returns when a deployment of a worker is in effect in all processes.
	Await(ctx context.Context, target string, d events.Deployment) (*control.Activation, error)
	// holds returns the deployment of a worker that holds now.
	holds(ctx context.Context, target string) (events.Deployment, error)
}

// doorWatch is the watch of an owner.
type doorWatch struct{ *control.Client }

func (w doorWatch) holds(ctx context.Context, target string) (events.Deployment, error) {
	v, err := w.WorkerVersions(ctx, control.WorkerName{Worker: target})
	return v.Deployment, err
}

// fleetWatch is the watch of the fleet's user.
type fleetWatch struct {
	*control.Remote
	store *deploy.Store
}

func (w fleetWatch) holds(ctx context.Context, target string) (events.Deployment, error) {
	owner, name, err := events.ParseTarget(target)
	if err != nil {
		return events.Deployment{}, err
	}
	in, err := w.store.Installation(ctx, owner, name)
	return in.Deployment, err
}

// removeAtDoor removes a worker of an owner.
func removeAtDoor(ctx context.Context, e *env, target string, yes bool) error {
	return withDoor(e, func(c *control.Client) error {
		r := control.RemoveWorker{WorkerName: control.WorkerName{Worker: target}}
		waiting := func(r control.RemovedWorker) string {
			return waitingText(consumer.Backlog{Stored: r.Stored, Parked: r.Parked, Delayed: r.Delayed})
		}
		if !yes && config.IsTerminal(e.in) {
			r.DryRun = true
			would, err := control.Remove(ctx, c, r)
			if err != nil {
				return err
			}
			if !e.asks(fmt.Sprintf("remove %s with %s? %s", target, counted(would.Versions, "version"), waiting(would))) {
				return errors.New("nothing is removed")
			}
			r.DryRun = false
		}
		removed, err := control.Remove(ctx, c, r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "removed %s; %s\n", target, waiting(removed))
		return err
	})
}
