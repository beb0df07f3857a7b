package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// eventLines writes a line about each reply and each failure.
type eventLines struct {
	lifecycle.Unobserved
	out io.Writer
}

// Replied implements lifecycle.Observer.
func (l *eventLines) Replied(r *lifecycle.Report) {
	if r.End == nil {
		eventLine(l.out, r)
	}
}

// Ended implements lifecycle.Observer.
func (l *eventLines) Ended(r *lifecycle.Report) { eventLine(l.out, r) }

// eventLine writes a line about the reply of an attempt, or about its failure.
func eventLine(out io.Writer, r *lifecycle.Report) {
	if r.Attempt.Batch != nil {
		batchLine(out, r)
		return
	}
	e, status := r.Attempt.Event, ""
	switch {
	case r.End != nil && r.End.Failure != nil:
		status = "✗ " + string(r.End.Failure.Reason)
	case r.Reply == nil && r.End != nil && r.End.Retry:
		status = "asks to run again"
	case r.Reply == nil: // its line was printed when it had a reply
		return
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
	fmt.Fprintf(out, "%s event %s/%s  %s  %s  %s  event %s, attempt %d\n",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, what, status, took, e.ID, r.Attempt.Number)
}

// batchLine writes a line about the end of a batch: how many of its events were handled, and what became of the others.
func batchLine(out io.Writer, r *lifecycle.Report) {
	if r.End == nil {
		return
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
	fmt.Fprintf(out, "%s batch %s/%s  %s  %s  %s\n",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, counted(len(batch), "event"), status, took)
}
