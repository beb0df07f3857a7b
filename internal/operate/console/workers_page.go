package console

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// workersPage is the data of the list of workers.
type workersPage struct {
	control.FoundWorkers
	List    listing
	Traffic traffic
}

func listWorkers(c *call) (*page, error) {
	l, wrong := c.listing("deployed", byTraffic)
	p := workersPage{List: l}
	show := func(err error) (*page, error) {
		return &page{view: "workers", title: "Workers", place: "workers", data: p}, err
	}
	if wrong != nil {
		return show(wrong)
	}
	var err error
	if p.Traffic, err = c.traffic(l.Sort == byTraffic); err != nil {
		return nil, err
	}
	r := control.FindWorkers{Owner: c.arg("owner"), Match: c.arg("match")}
	if l.Sort != byTraffic {
		r.Sort, r.Skip = l.Sort, l.Skip()
		p.FoundWorkers, err = findWorkers(c.ctx, c.fleet(), r)
		p.List.Total = p.Total
		return show(err)
	}
	busiest := p.Traffic.workers(r.Owner, r.Match)
	if p.List.Total, r.Names = len(busiest), l.slice(busiest); len(r.Names) == 0 {
		return show(nil)
	}
	p.FoundWorkers, err = findWorkers(c.ctx, c.fleet(), r)
	slices.SortFunc(p.Workers, func(a, b control.WorkerSummary) int {
		return slices.Index(busiest, a.Owner+"/"+a.Name) - slices.Index(busiest, b.Owner+"/"+b.Name)
	})
	return show(err)
}

// workerPage is the data of the page of a worker.
type workerPage struct {
	Name        string // OWNER/WORKER
	Owner       string
	Worker      string
	Active      control.Worker    // the version that has most events
	Versions    []control.Version // newest first
	Deployment  workers.Deployment
	Deployments []workers.Deployment // newest first
	Back        string               // the version before; "": there is none to roll back to
	Schedules   []control.Schedule
	Figures     figures
	tailForm
}

// Addresses are the routes of the active version.
func (w workerPage) Addresses() []string {
	if w.Active.HTTP == nil {
		return nil
	}
	return w.Active.HTTP.Routes
}

// Bindings are the kinds and names of what the active version has in env, beside vars and secrets.
func (w workerPage) Bindings() (list []string) {
	b := w.Active.Spec.Bindings
	for _, kind := range []struct {
		name  string
		names []string
	}{
		{"kv", slices.Sorted(maps.Keys(b.KV))}, {"objects", slices.Sorted(maps.Keys(b.Objects))},
		{"queue", slices.Sorted(maps.Keys(w.Active.Queues))},
		{"service", slices.Sorted(maps.Keys(b.Services))}, {"nats", slices.Sorted(maps.Keys(b.NATS))},
	} {
		for _, name := range kind.names {
			list = append(list, kind.name+" "+name)
		}
	}
	return list
}

func (in inputs) workerName() control.WorkerName {
	return control.WorkerName{Worker: in.path("owner") + "/" + in.path("worker")}
}

func showWorker(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	name := in.workerName()
	versions, err := control.Ask(ctx, fleet, control.VersionsList, name)
	if err != nil {
		return nil, err
	}
	deployments, err := control.Ask(ctx, fleet, control.DeploymentsList, name)
	if err != nil {
		return nil, err
	}
	w := workerPage{
		tailForm: in.workerTail(in.path("owner"), in.path("worker")),
		Name:     name.Worker, Owner: in.path("owner"), Worker: in.path("worker"),
		Figures:  watchedWorker{fleet, in.path("owner"), in.path("worker")}.figures(ctx, nil),
		Versions: versions.Versions, Deployment: versions.Deployment, Deployments: deployments.Deployments,
		Back: versions.Deployment.BackTo(deployments.Deployments),
	}
	slices.Reverse(w.Versions)
	slices.Reverse(w.Deployments)
	if versions.Active != "" {
		shown, err := control.Ask(ctx, fleet, control.VersionsShow,
			control.ShowVersion{WorkerName: name, Version: versions.Active})
		if err != nil {
			return nil, err
		}
		w.Active = shown.Version
	}
	if len(w.Active.Spec.Schedules) > 0 {
		list, err := control.Ask(ctx, fleet, control.SchedulesList,
			control.ListWorkers{Owner: w.Owner, After: before(name.Worker), Limit: 1})
		if err != nil {
			return nil, err
		}
		for _, s := range list.Schedules {
			if s.Worker == w.Worker {
				w.Schedules = append(w.Schedules, s)
			}
		}
	}
	return &page{view: "worker", title: name.Worker, place: "workers", data: w}, nil
}

// before is a name that sorts before another one, and after all that sort before it.
func before(name string) string {
	last := len(name) - 1
	return name[:last] + string(name[last]-1) + "~"
}

// wrongForm is the error of a field of a form.
func wrongForm(field, value, allowed string) error {
	return &control.Error{Code: 400, Field: field, Text: field + " is " + strconv.Quote(value) + ": " + allowed}
}

// figures are what a worker does, or why that is not known.
type figures struct {
	flow.Figures
	Err error
}

// watchedWorker is a worker of which somebody sees the page.
type watchedWorker struct {
	fleet         *control.Client
	owner, worker string
}

// looks are what the processes said of a worker in the last minute, oldest first.
type looks []flow.Snapshot

// figures asks all processes. Rates are those since the oldest of the looks before, to which the new one is added.
// before may be nil: then there are no rates.
func (w watchedWorker) figures(ctx context.Context, before *looks) (f figures) {
	now, err := flow.TakeOf(ctx, w.fleet, w.owner, w.worker)
	var oldest flow.Snapshot
	if before != nil && len(*before) > 0 {
		oldest = (*before)[0]
	}
	f = figures{flow.FiguresOf(w.owner+"/"+w.worker, oldest, now), err}
	if before != nil && err == nil {
		const most = int(time.Minute / sampleEvery)
		kept := *before
		*before = append(kept[max(0, len(kept)-most+1):len(kept):len(kept)], now)
	}
	return f
}

// follow sends the figures until ctx is done.
func (w watchedWorker) follow(ctx context.Context, send func(figures) error) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for before := (looks{}); ; {
		if err := send(w.figures(ctx, &before)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
