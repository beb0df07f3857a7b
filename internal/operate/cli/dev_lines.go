package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// eventLines writes a line about each reply and each failure. That of a failure says what becomes of the event.
type eventLines struct {
	lifecycle.Unobserved
	out      io.Writer
	subjects events.Subjects
	show     string // the command that shows a dead letter

	mu      sync.Mutex
	failed  map[*lifecycle.Delivery]string // lines of attempts that failed, until it is decided about their events
	letters map[string]string              // lines of events that end as dead letters, by the subjects of these
	running map[string]int                 // attempts by their workers
}

// letterAfter is how long a line waits for the number of its dead letter.
const letterAfter = 2 * time.Second

// Started implements lifecycle.Observer.
func (l *eventLines) Started(a *lifecycle.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[a.Worker.Target()]++
}

// Replied implements lifecycle.Observer.
func (l *eventLines) Replied(r *lifecycle.Report) {
	if r.End == nil {
		l.print(eventLine(r))
	}
}

// Ended implements lifecycle.Observer.
func (l *eventLines) Ended(r *lifecycle.Report) {
	l.mu.Lock()
	if of := r.Attempt.Worker.Target(); r.End.Started && l.running[of] > 0 {
		l.running[of]--
	}
	line := eventLine(r)
	wait := r.Attempt.Batch == nil && line != "" && (r.End.Failure != nil || r.End.Retry)
	if wait {
		l.failed[r.Attempt.Event] = line
	}
	l.mu.Unlock()
	if !wait {
		l.print(line)
	}
}

// Settled implements lifecycle.Observer.
func (l *eventLines) Settled(s *lifecycle.Settlement) {
	if s.ReplyOnly() {
		return
	}
	l.mu.Lock()
	line := l.failed[s.Event]
	delete(l.failed, s.Event)
	switch o := &s.Outcome; {
	case line == "":
	case o.Verdict == lifecycle.Retry:
		line = saying(line, "retry in "+inTime(o.Delay))
	case o.Verdict == lifecycle.Dead && o.Failure != nil:
		subject := l.subjects.Dead(&s.Event.Event, o.Failure.Reason)
		l.letters[subject], line = line, ""
		time.AfterFunc(letterAfter, func() { l.print(l.takeLetter(subject)) })
	}
	l.mu.Unlock()
	l.print(line)
}

func (l *eventLines) print(line string) {
	if line != "" {
		fmt.Fprintln(l.out, line)
	}
}

// takeLetter returns the line that waits for the dead letter with a subject; "" = none does.
func (l *eventLines) takeLetter(subject string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.letters[subject]
	delete(l.letters, subject)
	return line
}

// followDead completes the lines of events that became dead letters. The caller stops it.
func (l *eventLines) followDead(ctx context.Context, nc *nats.Conn) (jetstream.ConsumeContext, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	letters, err := js.OrderedConsumer(ctx, events.StreamDead, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{l.subjects.DeadOwner(devOwner)}, DeliverPolicy: jetstream.DeliverNewPolicy,
		HeadersOnly: true,
	})
	if err != nil {
		return nil, err
	}
	return letters.Consume(func(m jetstream.Msg) {
		line := l.takeLetter(m.Subject())
		if about, err := m.Metadata(); err == nil && line != "" {
			n := about.Sequence.Stream
			line = saying(line, fmt.Sprintf("dead letter %d: %s %d", n, l.show, n))
		}
		l.print(line)
	})
}

// ending says what the end of the command waits for.
func (l *eventLines) ending(most time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var of []string
	n := 0
	for _, worker := range slices.Sorted(maps.Keys(l.running)) {
		if l.running[worker] > 0 {
			n += l.running[worker]
			of = append(of, worker)
		}
	}
	if n == 0 {
		return "ending: no event runs"
	}
	return fmt.Sprintf("ending: waits for %s of %s, at most %s; another Ctrl-C ends at once", counted(n, "event"),
		strings.Join(of, ", "), most)
}

// saying is the line of a failed attempt that says what becomes of the event, before which one it is.
func saying(line, what string) string {
	i := strings.LastIndex(line, "  event ")
	return line[:i] + "  " + what + line[i:]
}

// inTime is how long something takes, for people.
func inTime(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// eventLine is a line about the reply of an attempt, or about its failure; "" = there is nothing to say.
func eventLine(r *lifecycle.Report) string {
	if r.Attempt.Batch != nil {
		return batchLine(r)
	}
	e, status := r.Attempt.Event, ""
	switch {
	case r.End != nil && r.End.Failure != nil:
		status = "✗ " + string(r.End.Failure.Reason)
	case r.Reply == nil && r.End != nil && r.End.Retry:
		status = "asks to run again"
	case r.Reply == nil: // its line was printed when it had a reply
		return ""
	case e.Kind == events.Fetch:
		status = fmt.Sprint(r.Reply.Status)
	default:
		status = "✓"
	}
	what := e.Kind.String()
	switch {
	case e.Service != nil && e.Service.Method != "":
		what = e.Service.Method + "()"
	case e.Kind == events.Fetch:
		what = e.Method + " " + e.URL
	}
	took := time.Since(r.Attempt.Start).Round(10 * time.Microsecond)
	return fmt.Sprintf("%s event %s/%s  %s  %s  %s  event %s, attempt %d",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, what, status, took, e.ID, r.Attempt.Number)
}

// batchLine is a line about the end of a batch: how many of its events were handled, and what became of the others.
func batchLine(r *lifecycle.Report) string {
	if r.End == nil {
		return ""
	}
	e, batch := r.Attempt.Event, r.Attempt.Batch
	acked, again, failed := 0, 0, 0
	for i := range batch {
		switch end, _ := r.End.Of(i); {
		case end.Failure != nil || end.Interrupted:
			failed++
		case end.Retry:
			again++
		default:
			acked++
		}
	}
	status := fmt.Sprintf("✓ %d", acked)
	if again > 0 {
		status += fmt.Sprintf("  %d ask to run again", again)
	}
	if failed > 0 {
		status += fmt.Sprintf("  ✗ %d", failed)
		if f := r.End.Failure; f != nil {
			status += " " + string(f.Reason)
		}
	}
	took := time.Since(r.Attempt.Start).Round(10 * time.Microsecond)
	return fmt.Sprintf("%s batch %s/%s  %s  %s  %s",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, counted(len(batch), "event"), status, took)
}

// show prints how to call the worker.
func (d *dev) show(w *workers.Worker) {
	for _, s := range w.Schedules {
		fmt.Fprintf(d.out, "    ticks by itself: %s\n", scheduleText(s))
	}
	if at := d.fleet.WebAddress(w); at != "" {
		fmt.Fprintf(d.out, "    %s\n", at)
	}
	for _, k := range w.Handlers {
		fmt.Fprintf(d.out, "    %s %s %s --data '{}'\n", d.command("send"), k, w.Target())
		fmt.Fprintf(d.out, "    nats req -s %s %s '{}'\n", d.fleet.URL(), d.subjects().Call(k, w.Owner, w.Name))
	}
}

// command is how to call a command of this program for this fleet.
func (d *dev) command(name string) string {
	if p := d.fleet.Config().NatsPort; d.fleet.Embeds() && p != 4222 {
		return fmt.Sprintf("PINWHEEL_NATS_URL=%s pinwheel %s", d.fleet.URL(), name)
	}
	return "pinwheel " + name
}

// refused prints why a source is not deployed.
func (d *dev) refused(path string, err error) {
	var none *deploy.RefusedError
	var missing *deploy.MissingSecretsError
	switch {
	case errors.As(err, &none) && none.Failure.Reason == events.ReasonNoHandler && !slices.Contains(d.files, path):
		if !d.broken[path] {
			fmt.Fprintf(d.out, "– %s is no worker: it has no handler\n", path)
		}
		d.broken[path] = true
		return
	case errors.As(err, &missing):
		file := filepath.Join(sourceDir(path), devVarsFile)
		err = fmt.Errorf("%w, and %s=… in %s does for dev", err, missing.Names[0], file)
	}
	d.broken[path] = true
	fmt.Fprintf(d.out, "✗ %s\n%s\n", path, indent(err.Error()))
}

// printLine prints a log line of a worker.
func (d *dev) printLine(m *nats.Msg) {
	var l events.LogLine
	if json.Unmarshal(m.Data, &l) != nil {
		return
	}
	text := l.Text
	if l.EventID != "" {
		text += fmt.Sprintf("  (event %s, attempt %d)", l.EventID, l.Attempt)
	}
	if l.Stack != "" {
		text += "\n" + l.Stack
	}
	at := l.Time.Local().Format("15:04:05.000")
	fmt.Fprintf(d.out, "%s %-5s %s/%s  %s\n", at, l.Level, l.Owner, l.Worker, continued(text))
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
