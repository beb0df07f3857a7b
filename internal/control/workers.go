package control

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Worker describes a version of a worker for programs. It leaves out the code and the values of the variables, which
// may be secrets. Its fields hide those of Spec that are shown differently.
type Worker struct {
	Owner    string            `json:"owner"`
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Hash     string            `json:"hash"`
	Handlers []events.Kind     `json:"handlers"`
	File     string            `json:"file"`
	Vars     []string          `json:"vars"`   // names only
	Queues   map[string]string `json:"queues"` // present even when there are none
	events.Spec
	DeployedAt time.Time `json:"deployedAt"`
	Versions   []Version `json:"versions,omitempty"` // oldest first; the last one is active
}

// Version is a stored version of a worker.
type Version struct {
	Version    string    `json:"version"`
	DeployedAt time.Time `json:"deployedAt"`
}

// DescribeWorker describes w.
func DescribeWorker(w *events.Worker) Worker {
	d := Worker{
		Owner: w.Owner, Name: w.Name, Version: w.Version, Hash: w.Hash, Handlers: append([]events.Kind{}, w.Handlers...), File: w.File,
		Vars: append([]string{}, slices.Sorted(maps.Keys(w.Vars))...), Queues: map[string]string{}, Spec: w.Spec.OrDefault(), DeployedAt: w.DeployedAt,
	}
	maps.Copy(d.Queues, w.Queues)
	d.Spec.Vars = nil
	return d
}

// DescribeVersions lists versions, in their order.
func DescribeVersions(ws []*events.Worker) []Version {
	versions := make([]Version, len(ws))
	for i, w := range ws {
		versions[i] = Version{w.Version, w.DeployedAt}
	}
	return versions
}

// ListWorkers chooses the active versions of an owner, or all of them, sorted by name.
type ListWorkers struct {
	Owner string `json:"owner"`
	After string `json:"after"` // OWNER/WORKER
	Limit int    `json:"limit"`
}

// find returns everything that the request chooses, and how many of them are asked for.
func (r ListWorkers) find(ctx context.Context, o *Operations) (ws []*events.Worker, limit int, err error) {
	if err := CheckName("owner", r.Owner); err != nil {
		return nil, 0, err
	}
	if limit, err = listed(r.Limit); err != nil {
		return nil, 0, err
	}
	ws, err = o.workers.List(ctx, r.Owner)
	return slices.DeleteFunc(ws, func(w *events.Worker) bool { return w.Target() <= r.After }), limit, err
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
		d := DescribeWorker(w)
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
	Active   string    `json:"active"`
	Versions []Version `json:"versions"` // oldest first
	Worker   string    `json:"worker"`
}

// WorkerVersions lists the versions of a worker.
func (o *Operations) WorkerVersions(ctx context.Context, r WorkerName) (WorkerVersions, error) {
	owner, name, err := r.parse()
	if err != nil {
		return WorkerVersions{}, err
	}
	ws, err := o.workers.Versions(ctx, owner, name)
	if err != nil {
		return WorkerVersions{}, err
	}
	return WorkerVersions{ws[len(ws)-1].Version, DescribeVersions(ws), r.Worker}, nil
}
