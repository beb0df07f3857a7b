package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func (e *env) printWorkersJSON(list []events.Installation) error {
	enc := json.NewEncoder(e.out)
	for _, in := range list {
		if err := enc.Encode(control.DescribeInstallation(in)); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) printWorkerJSON(w *events.Worker, in events.Installation) error {
	j := control.DescribeWorker(w)
	j.Deployment, j.Versions = &in.Deployment, control.DescribeVersions(in)
	return json.NewEncoder(e.out).Encode(j)
}

// table aligns columns that are separated by tabs.
func (e *env) table() *tabwriter.Writer { return tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0) }

func (e *env) printWorkers(list []events.Installation) error {
	t := e.table()
	fmt.Fprintln(t, "WORKER\tVERSION\tHANDLERS\tDEPLOYED")
	for _, in := range list {
		w := in.Active()
		if w == nil {
			fmt.Fprintf(t, "%s\tnone active\t\t\n", in.Target())
			continue
		}
		version := w.Version
		if c := in.Deployment.Candidate(); c.Version != "" {
			version = fmt.Sprintf("%s, %s with %v %%", version, c.Version, c.Percent)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", in.Target(), version, kindList(w.Handlers), stamped(in.Deployment.At))
	}
	return t.Flush()
}

// printTogether writes how many events of a worker run at once and in one run.
func printTogether(row func(name, format string, args ...any), w *events.Worker) {
	switch w.Concurrency {
	case 0:
	case 1:
		row("concurrency", "one event at a time, in all processes together")
	default:
		row("concurrency", "at most %d events at once, in all processes together", w.Concurrency)
	}
	if w.Queue {
		b := w.Batch.OrDefault()
		row("batches", "up to %s, which gather for up to %s", counted(b.MaxSize, "event"), b.MaxWait.Duration())
	}
}

func (e *env) printWorker(w *events.Worker, in events.Installation) error {
	t := e.table()
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("worker", "%s", w.Target())
	row("version", "%s", w.Version)
	row("deployed", "%s", stamped(w.DeployedAt))
	row("handlers", "%s", kindList(w.Handlers))
	if w.Code == "" { // at the owner's door
		row("file", "%s", w.File)
	} else {
		row("file", "%s, %d bytes bundled", w.File, len(w.Code))
	}
	row("mode", "%s", w.Mode)
	if vars := w.AllVars(); len(vars) > 0 {
		row("vars", "%s", strings.Join(slices.Sorted(maps.Keys(vars)), ", "))
	}
	if len(w.Secrets) > 0 {
		row("secrets", "%s", strings.Join(w.Secrets, ", "))
	}
	printBindings(w, row)
	l, r := w.Limits.OrDefault(), w.Retries.OrDefault()
	row("limits", "cpu %s, wall %s, heap %d MB, %d subrequests, %d sends, %d bytes of log", l.CPU.Duration(), l.Wall.Duration(), l.HeapMB, l.Subrequests, l.Sends, l.LogBytes)
	row("retries", "%d attempts, delays from %s to %s", r.MaxAttempts, r.Initial.Duration(), r.Max.Duration())
	if l := w.Lifetime; l != (events.Lifetime{}) {
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
		switch p := in.Deployment.PercentOf(v.Version); {
		case p == 100:
			role = ", active"
		case p > 0:
			role = fmt.Sprintf(", active with %v %%", p)
		}
		for _, alias := range in.Deployment.AliasesOf(v.Version) {
			role += ", alias " + alias
		}
		row("kept", "%s of %s%s", v.Version, stamped(v.DeployedAt), role)
	}
	return t.Flush()
}

// stamped formats a time in the local time zone.
func stamped(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// printBindings prints what env has beside vars and secrets, each as its kind in the manifest and what it is.
func printBindings(w *events.Worker, row func(name, format string, args ...any)) {
	for _, b := range w.Env() {
		switch b.Kind {
		case events.BindingQueue:
			row("queue", "%s to %s/%s", b.Name, w.Owner, b.Value)
		case events.BindingKV:
			row("kv", "%s is %s of %s", b.Name, b.Value, w.Owner)
		case events.BindingObjects:
			row("objects", "%s is %s of %s", b.Name, b.Value, w.Owner)
		case events.BindingService:
			row("service", "%s calls %s/%s", b.Name, w.Owner, b.Value)
		case events.BindingNATS:
			row("nats", "%s: %s", b.Name, b.Value)
		case events.BindingVersion:
			row("version", "%s describes the version", b.Name)
		case events.BindingVar, events.BindingJSON:
		default:
			row(string(b.Kind), "%s is %s", b.Name, b.Value)
		}
	}
}
