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

func (e *env) printWorkersJSON(ws []*events.Worker) error {
	enc := json.NewEncoder(e.out)
	for _, w := range ws {
		if err := enc.Encode(control.DescribeWorker(w)); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) printWorkerJSON(w *events.Worker, versions []*events.Worker) error {
	j := control.DescribeWorker(w)
	j.Versions = control.DescribeVersions(versions)
	return json.NewEncoder(e.out).Encode(j)
}

// table aligns columns that are separated by tabs.
func (e *env) table() *tabwriter.Writer { return tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0) }

func (e *env) printWorkers(ws []*events.Worker) error {
	t := e.table()
	fmt.Fprintln(t, "WORKER\tVERSION\tHANDLERS\tDEPLOYED")
	for _, w := range ws {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", w.Target(), w.Version, kindList(w.Handlers), stamped(w.DeployedAt))
	}
	return t.Flush()
}

func (e *env) printWorker(w *events.Worker, versions []*events.Worker) error {
	t := e.table()
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("worker", "%s", w.Target())
	row("version", "%s", w.Version)
	row("deployed", "%s", stamped(w.DeployedAt))
	row("handlers", "%s", kindList(w.Handlers))
	row("file", "%s, %d bytes bundled", w.File, len(w.Code))
	row("mode", "%s", w.Mode)
	if len(w.Vars) > 0 {
		row("vars", "%s", strings.Join(slices.Sorted(maps.Keys(w.Vars)), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Queues)) {
		row("queue", "%s to %s/%s", name, w.Owner, w.Queues[name])
	}
	l, r := w.Limits.OrDefault(), w.Retries.OrDefault()
	row("limits", "cpu %s, wall %s, heap %d MB, %d subrequests, %d sends, %d bytes of log", l.CPU.Duration(), l.Wall.Duration(), l.HeapMB, l.Subrequests, l.Sends, l.LogBytes)
	row("retries", "%d attempts, delays from %s to %s", r.MaxAttempts, r.Initial.Duration(), r.Max.Duration())
	if l := w.Lifetime; l != (events.Lifetime{}) {
		row("lifetime", "idle %s, in all %s, %d requests (0 = no bound)", l.Idle.Duration(), l.TTL.Duration(), l.Requests)
	}
	if w.Idempotent {
		row("idempotent", "events that succeeded are answered from their stored results")
	}
	for _, s := range w.Schedules {
		row("schedule", "%s: %s", s.Name, scheduleText(s))
	}
	if w.OnDead != nil {
		row("dead letters", "told to %s", w.OnDead)
	}
	for i, v := range slices.Backward(versions) {
		active := ""
		if i == len(versions)-1 {
			active = ", active"
		}
		row("kept", "%s of %s%s", v.Version, stamped(v.DeployedAt), active)
	}
	return t.Flush()
}

// stamped formats a time in the local time zone.
func stamped(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
