package control

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Worker describes a version of a worker for programs. It leaves out the code and the values of the variables, which
// may be secrets. Its fields hide those of Spec that are shown differently.
type Worker struct {
	Owner    string            `json:"owner"`
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Hash     string            `json:"hash"`
	Handlers []events.Kind     `json:"handlers"`
	Queue    bool              `json:"queue,omitempty"` // it gets its tasks in batches
	File     string            `json:"file"`
	Vars     []string          `json:"vars"`   // names only
	Queues   map[string]string `json:"queues"` // present even when there are none
	// VersionBinding is the name in env of what describes the version.
	VersionBinding string `json:"versionBinding,omitempty"`
	workers.Spec
	DeployedAt time.Time           `json:"deployedAt"`
	Tag        string              `json:"tag,omitempty"`
	Message    string              `json:"message,omitempty"`
	Deployment *workers.Deployment `json:"deployment,omitempty"`
	Versions   []Version           `json:"versions,omitempty"` // oldest first
}

// Version is a stored version of a worker.
type Version struct {
	Version    string    `json:"version"`
	DeployedAt time.Time `json:"deployedAt"`
	Tag        string    `json:"tag,omitempty"`
	Message    string    `json:"message,omitempty"`
	Percent    float64   `json:"percent,omitempty"` // of the events; 0 = it runs only what names it
	Aliases    []string  `json:"aliases,omitempty"`
}

// DescribeInstallation describes a worker by its active version and its deployment. If no version is active, it has
// only the names of the worker.
func DescribeInstallation(in workers.Installation) Worker {
	w := in.Active()
	if w == nil {
		w = &workers.Worker{Owner: in.Owner, Name: in.Name}
	}
	d := DescribeWorker(w)
	d.Deployment = &in.Deployment
	return d
}

// DescribeWorker describes w, without its deployment.
func DescribeWorker(w *workers.Worker) Worker {
	d := Worker{
		Owner: w.Owner, Name: w.Name, Version: w.Version, Hash: w.Hash, Handlers: append([]events.Kind{}, w.Handlers...),
		Queue: w.Queue, File: w.File,
		Vars: slices.AppendSeq([]string{}, maps.Keys(w.AllVars())), Queues: map[string]string{},
		VersionBinding: w.VersionBinding, Spec: w.Spec.OrDefault(), DeployedAt: w.DeployedAt,
		Tag: w.Tag, Message: w.Message,
	}
	slices.Sort(d.Vars)
	maps.Copy(d.Queues, w.Queues)
	if w.Queue {
		d.Spec.Batch = new(w.Batch.OrDefault())
	}
	d.Spec.Vars, d.Spec.JSON = nil, nil // their values are not told
	return d
}

// DescribeVersions lists the versions of a worker, oldest first, each with its share.
func DescribeVersions(in workers.Installation) []Version {
	versions := make([]Version, len(in.Versions))
	for i, w := range in.Versions {
		versions[i] = Version{w.Version, w.DeployedAt, w.Tag, w.Message, in.Deployment.PercentOf(w.Version),
			in.Deployment.AliasesOf(w.Version)}
	}
	return versions
}

// ListWorkers chooses the active versions of an owner, or all of them, sorted by name.
type ListWorkers struct {
	Owner string `json:"owner"`
	After string `json:"after"` // OWNER/WORKER
	Limit int    `json:"limit"`
}

// check returns how many workers a request asks for.
func (r ListWorkers) check() (limit int, err error) {
	if err := CheckName("owner", r.Owner); err != nil {
		return 0, err
	}
	return listed(r.Limit)
}

// find returns everything that the request chooses, and how many of them are asked for.
func (r ListWorkers) find(ctx context.Context, o *Operations) (ws []workers.Installation, limit int, err error) {
	if limit, err = r.check(); err != nil {
		return nil, 0, err
	}
	ws, err = o.workers.List(ctx, r.Owner)
	return slices.DeleteFunc(ws, func(in workers.Installation) bool { return in.Target() <= r.After }), limit, err
}

// WorkerList is a page of the list of workers.
type WorkerList struct {
	Workers []Worker `json:"workers"`
	Next    string   `json:"next,omitempty"` // name after which the next page begins; empty at the end
}

// Workers lists active versions.
func (o *Operations) Workers(ctx context.Context, r ListWorkers) (WorkerList, error) {
	list := WorkerList{Workers: []Worker{}}
	ws, limit, err := r.find(ctx, o)
	if err != nil {
		return list, err
	}
	size := 0
	for _, w := range ws {
		d := DescribeInstallation(w)
		text, err := json.Marshal(d)
		if err != nil {
			return list, err
		}
		if size += len(text) + 1; len(list.Workers) == limit || size > o.answerRoom() && len(list.Workers) > 0 {
			last := list.Workers[len(list.Workers)-1]
			list.Next = last.Owner + "/" + last.Name
			break
		}
		list.Workers = append(list.Workers, d)
	}
	return list, nil
}

// WorkerName names a worker.
type WorkerName struct {
	Worker string `json:"worker"` // OWNER/WORKER
}

func (r WorkerName) parse() (owner, name string, err error) {
	if owner, name, err = events.ParseTarget(r.Worker); err != nil {
		return "", "", refused("%v", err)
	}
	return owner, name, nil
}

// WorkerVersions has the stored versions of a worker.
type WorkerVersions struct {
	Active     string             `json:"active"`
	Deployment workers.Deployment `json:"deployment"`
	Versions   []Version          `json:"versions"` // oldest first
	Worker     string             `json:"worker"`
}

// WorkerVersions lists the versions of a worker.
func (o *Operations) WorkerVersions(ctx context.Context, r WorkerName) (WorkerVersions, error) {
	owner, name, err := r.parse()
	if err != nil {
		return WorkerVersions{}, err
	}
	in, err := o.workers.Installation(ctx, owner, name)
	if err != nil {
		return WorkerVersions{}, err
	}
	return WorkerVersions{in.Deployment.Base(), in.Deployment, DescribeVersions(in), r.Worker}, nil
}

// ResetWorker is a worker whose contexts end.
type ResetWorker struct {
	Worker    string `json:"worker"`
	Processes int    `json:"processes"` // that end its contexts
	// Missing are the nodes of processes that are known and did not answer. They are cut off, ended, or of an earlier
	// release; an operator can ask again.
	Missing []string `json:"missing,omitempty"`
}

// recorded is what the audit stream tells of it.
func (r ResetWorker) recorded() any { return map[string]string{"worker": r.Worker} }

// resetWorker ends the contexts of a worker in all processes. What runs in them finishes, and the next event makes a
// new context.
func (s *Server) resetWorker(ctx context.Context, r WorkerName) (ResetWorker, error) {
	owner, name, err := r.parse()
	if err != nil {
		return ResetWorker{}, err
	}
	if _, err := s.workers.Installation(ctx, owner, name); err != nil {
		return ResetWorker{}, err
	}
	done, missing, err := s.cfg.Process.Reset(ctx, owner, name)
	answer := ResetWorker{Worker: r.Worker, Processes: len(done)}
	for _, m := range missing {
		answer.Missing = append(answer.Missing, m.Node)
	}
	slices.Sort(answer.Missing)
	return answer, err
}

// RemoveWorker removes a worker with all its versions.
type RemoveWorker struct {
	WorkerName
	DryRun bool `json:"dryRun"` // say only what would be removed
}

// RemovedWorker is a worker that was removed.
type RemovedWorker struct {
	DryRun   bool   `json:"dryRun,omitempty"`
	Versions int    `json:"versions"` // that it had
	Stored   uint64 `json:"stored"`   // events that waited for it, by where they are
	Parked   uint64 `json:"parked"`
	Delayed  uint64 `json:"delayed"`
	Worker   string `json:"worker"`
}

// recorded is what the audit stream tells of a removal.
func (r RemovedWorker) recorded() any {
	if r.DryRun {
		return nil
	}
	return map[string]string{"worker": r.Worker}
}

// removeWorker removes a worker with all its versions.
func (s *Server) removeWorker(ctx context.Context, r RemoveWorker) (RemovedWorker, error) {
	owner, name, err := r.parse()
	if err != nil {
		return RemovedWorker{}, err
	}
	versions, err := s.workers.Versions(ctx, owner, name)
	if err != nil && !errors.Is(err, deploy.ErrNotFound) { // Remove finds out whether an unreadable one exists
		return RemovedWorker{}, err
	}
	waiting, err := consumer.BacklogOf(ctx, s.js, s.subjects, owner, name)
	if err != nil {
		return RemovedWorker{}, err
	}
	removed := RemovedWorker{r.DryRun, len(versions), waiting.Stored, waiting.Parked, waiting.Delayed, owner + "/" + name}
	if r.DryRun {
		return removed, nil
	}
	return removed, s.workers.Remove(ctx, owner, name)
}
