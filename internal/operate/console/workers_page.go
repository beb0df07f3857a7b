package console

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// pageSize is how many rows a page of a list has.
const pageSize = 100

// workersPage is the data of the list of workers.
type workersPage struct {
	control.FoundWorkers
	Query url.Values
}

func listWorkers(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	found, err := control.Ask(ctx, fleet, control.WorkersFind, control.FindWorkers{Owner: q.Get("owner"),
		Match: q.Get("match"), After: q.Get("after"), Limit: pageSize})
	if err != nil {
		return nil, err
	}
	return &page{view: "workers", title: "Workers", place: "workers", data: workersPage{found, q}}, nil
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

// note is what a change says of who made it.
func (s session) note(message string) control.Note {
	by := "console"
	if s.Who != "" {
		by = s.Who + " (console)"
	}
	return control.Note{By: by, Message: message}
}

func promote(c *call) (*page, error) {
	r := control.Promote{WorkerName: c.workerName(), Version: c.form("version"), Force: c.form("force") != "",
		Note: c.note(c.form("message"))}
	if text := c.form("percent"); text != "" {
		var err error
		if r.Percent, err = strconv.ParseFloat(text, 64); err != nil || !(r.Percent > 0 && r.Percent <= 100) {
			return nil, wrongForm("percent", text, "it is above 0, to 100")
		}
	}
	d, err := control.Ask(c.ctx, c.fleet(), control.DeploymentsPromote, r)
	if err != nil {
		return nil, err
	}
	return c.redeployed(d, "promoted")
}

func rollback(c *call) (*page, error) {
	d, err := control.Ask(c.ctx, c.fleet(), control.DeploymentsRollback, control.Rollback{WorkerName: c.workerName(),
		Version: c.form("version"), Force: c.form("force") != "", Note: c.note(c.form("message"))})
	if err != nil {
		return nil, err
	}
	return c.redeployed(d, "rolled back")
}

// reset ends the contexts of a worker in all processes.
func reset(c *call) (*page, error) {
	done, err := control.Ask(c.ctx, c.fleet(), control.WorkersReset, c.workerName())
	if err != nil {
		return nil, err
	}
	if len(done.Missing) > 0 {
		return c.done("/workers/"+done.Worker, "%s is reset in %d processes. These did not answer: %s.", done.Worker, done.Processes,
			strings.Join(done.Missing, ", "))
	}
	return c.done("/workers/"+done.Worker, "%s is reset in all processes (%d).", done.Worker, done.Processes)
}

func (c *call) redeployed(d control.Redeployed, what string) (*page, error) {
	if !d.Changed {
		return c.done("/workers/"+d.Worker, "%s was like that already.", d.Worker)
	}
	return c.done("/workers/"+d.Worker, "%s is %s: deployment %d.", d.Worker, what, d.Deployment.Number)
}

// wrongForm is the error of a field of a form.
func wrongForm(field, value, allowed string) error {
	return &control.Error{Code: 400, Field: field, Text: field + " is " + strconv.Quote(value) + ": " + allowed}
}
