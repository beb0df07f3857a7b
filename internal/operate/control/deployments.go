package control

import (
	"context"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// WorkerDeployments has the kept deployments of a worker.
type WorkerDeployments struct {
	Deployments []workers.Deployment `json:"deployments"` // oldest first; the last one is in effect
	Worker      string               `json:"worker"`
}

// Deployments lists the deployments of a worker.
func (o *Operations) Deployments(ctx context.Context, r WorkerName) (WorkerDeployments, error) {
	owner, name, err := r.parse()
	if err != nil {
		return WorkerDeployments{}, err
	}
	list, err := o.workers.Deployments(ctx, owner, name)
	return WorkerDeployments{list, r.Worker}, err
}

// Redeployed is the deployment of a worker after a change.
type Redeployed struct {
	Changed    bool               `json:"changed"` // false: it was like that already
	Deployment workers.Deployment `json:"deployment"`
	Worker     string             `json:"worker"`
}

// Note is what a person says about a change. Nothing checks it.
type Note struct {
	By      string `json:"by"`
	Message string `json:"message"`
}

// Promote gives a version a share.
type Promote struct {
	WorkerName
	Version string  `json:"version"` // whole, its number, or an alias
	Percent float64 `json:"percent"` // 0: everything
	Force   bool    `json:"force"`   // also when something that the version names is gone
	Note
}

// Promote gives a version a share, or everything.
func (o *Operations) Promote(ctx context.Context, r Promote) (Redeployed, error) {
	if r.Percent == 0 {
		r.Percent = 100
	}
	if r.Version == "" {
		return Redeployed{}, refused("which version? Name it, or its number or alias")
	}
	return o.redeploy(ctx, r.WorkerName, o.workers.Promote(ctx, r.Version, r.Percent, r.Force, deploy.Note(r.Note)))
}

// Rollback gives everything to an older version.
type Rollback struct {
	WorkerName
	Version string `json:"version"` // empty: the one before
	Force   bool   `json:"force"`   // also when something that the version names is gone
	Note
}

// Rollback gives everything to an older version.
func (o *Operations) Rollback(ctx context.Context, r Rollback) (Redeployed, error) {
	return o.redeploy(ctx, r.WorkerName, o.workers.Rollback(ctx, r.Version, r.Force, deploy.Note(r.Note)))
}

// Alias names a version.
type Alias struct {
	WorkerName
	Alias   string `json:"alias"`
	Version string `json:"version"` // empty: the alias is removed
}

// SetAlias names a version, or removes a name.
func (o *Operations) SetAlias(ctx context.Context, r Alias) (Redeployed, error) {
	return o.redeploy(ctx, r.WorkerName, deploy.SetAlias(r.Alias, r.Version))
}

func (o *Operations) redeploy(ctx context.Context, r WorkerName, change deploy.Change) (Redeployed, error) {
	owner, name, err := r.parse()
	if err != nil {
		return Redeployed{}, err
	}
	if err := o.workers.AdmitDeployment(ctx, owner, name); err != nil {
		return Redeployed{}, err
	}
	d, changed, err := o.workers.Redeploy(ctx, owner, name, change)
	return Redeployed{changed, d, r.Worker}, err
}
