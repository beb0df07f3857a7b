package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// workerCells is a worker in a list.
func workerCells(w control.Worker) []any {
	target := w.Owner + "/" + w.Name
	if w.Version == "" {
		return []any{target, "none active", "", ""}
	}
	version, at := w.Version, w.DeployedAt
	if d := w.Deployment; d != nil {
		at = d.At
		if c := d.Candidate(); c.Version != "" {
			version = fmt.Sprintf("%s, %s with %v %%", version, c.Version, c.Percent)
		}
	}
	return []any{target, version, kindList(w.Handlers), stamped(at)}
}

// printTogether writes how many events of a worker run at once and in one run.
func printTogether(row func(name, format string, args ...any), w *control.Worker) {
	switch w.Concurrency {
	case 0:
	case 1:
		row("concurrency", "one event at a time, in all processes together")
	default:
		row("concurrency", "at most %d events at once, in all processes together", w.Concurrency)
	}
	if w.Queue {
		b := w.Spec.Batch.OrDefault()
		row("batches", "up to %s, which gather for up to %s", counted(b.MaxSize, "event"), b.MaxWait.Duration())
	}
}

func printWorker(to *terminal.Terminal, shown *control.ShownVersion, in control.WorkerVersions) error {
	t, w := to.Table(), &shown.Version
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("worker", "%s/%s", w.Owner, w.Name)
	row("version", "%s", w.Version)
	row("deployed", "%s", stamped(w.DeployedAt))
	row("handlers", "%s", kindList(w.Handlers))
	row("file", "%s, %d bytes bundled", w.File, shown.Size)
	row("mode", "%s", w.Mode)
	if len(w.Vars) > 0 {
		row("vars", "%s", strings.Join(w.Vars, ", "))
	}
	if len(w.Secrets) > 0 {
		row("secrets", "%s", strings.Join(w.Secrets, ", "))
	}
	printBindings(describedWorker(w), row)
	l, r := w.Limits.OrDefault(), w.Retries.OrDefault()
	row("limits", "cpu %s, wall %s, heap %d MB, %d subrequests, %d sends, %d bytes of log", l.CPU.Duration(), l.Wall.Duration(), l.HeapMB, l.Subrequests,
		l.Sends, l.LogBytes)
	row("retries", "%d attempts, delays from %s to %s", r.MaxAttempts, r.Initial.Duration(), r.Max.Duration())
	if l := w.Lifetime; l != (workers.Lifetime{}) {
		row("lifetime", "idle %s, in all %s, %d requests (0 = no bound)", l.Idle.Duration(), l.TTL.Duration(), l.Requests)
	}
	printTogether(row, w)
	if w.Idempotent {
		row("idempotent", "events that succeeded are answered from their stored results")
	}
	for _, s := range w.Schedules {
		row("schedule", "%s: %s", s.Name, scheduleText(s))
	}
	if w.OnDead != nil {
		row("dead letters", "told to %s", w.OnDead)
	}
	for _, v := range slices.Backward(in.Versions) {
		role := ""
		switch p := v.Percent; {
		case p == 100:
			role = ", active"
		case p > 0:
			role = fmt.Sprintf(", active with %v %%", p)
		}
		for _, alias := range v.Aliases {
			role += ", alias " + alias
		}
		row("kept", "%s of %s%s", v.Version, stamped(v.DeployedAt), role)
	}
	return t.Flush()
}

// describedWorker is the worker of a description. It has no code, and of its variables only the names.
func describedWorker(d *control.Worker) *workers.Worker {
	w := &workers.Worker{Owner: d.Owner, Name: d.Name, Version: d.Version, Hash: d.Hash, Handlers: d.Handlers,
		Queue: d.Queue, File: d.File, Spec: d.Spec, DeployedAt: d.DeployedAt}
	w.Queues, w.VersionBinding, w.Vars = d.Queues, d.VersionBinding, map[string]string{}
	for _, name := range d.Vars {
		w.Vars[name] = ""
	}
	return w
}

// stamped formats a time in the local time zone.
func stamped(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05Z07:00") }

// printBindings prints what env has beside vars and secrets, each as its kind in the manifest and what it is.
func printBindings(w *workers.Worker, row func(name, format string, args ...any)) {
	for _, b := range w.Env() {
		switch b.Kind {
		case workers.BindingQueue:
			row("queue", "%s to %s/%s", b.Name, w.Owner, b.Value)
		case workers.BindingKV:
			row("kv", "%s is %s of %s", b.Name, b.Value, w.Owner)
		case workers.BindingObjects:
			row("objects", "%s is %s of %s", b.Name, b.Value, w.Owner)
		case workers.BindingService:
			row("service", "%s calls %s/%s", b.Name, w.Owner, b.Value)
		case workers.BindingNATS:
			row("nats", "%s: %s", b.Name, b.Value)
		case workers.BindingVersion:
			row("version", "%s describes the version", b.Name)
		case workers.BindingVar, workers.BindingJSON:
		default:
			row(string(b.Kind), "%s is %s", b.Name, b.Value)
		}
	}
}
