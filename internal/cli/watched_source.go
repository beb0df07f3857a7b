package cli

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// watchedSource is where threads get their work, and somebody may look at what they report. Where nobody does, as in serve, that costs a load for each
// batch of reports.
type watchedSource struct {
	isolates.Source
	see atomic.Pointer[func(*events.Report)]
}

// observe has f called with each report, on the thread that made it, before it is judged. f must not keep it.
func (o *watchedSource) observe(f func(*events.Report)) { o.see.Store(&f) }

// Report passes on what became of attempts.
func (o *watchedSource) Report(thread int, reports []events.Report) {
	if see := o.see.Load(); see != nil {
		for i := range reports {
			(*see)(&reports[i])
		}
	}
	o.Source.Report(thread, reports)
}

// eventLine writes a line about the reply of an attempt, or about its failure.
func eventLine(out io.Writer, r *events.Report) {
	e, status := r.Attempt.Event, ""
	switch {
	case r.End != nil && r.End.Failure != nil:
		status = "✗ " + string(r.End.Failure.Reason)
	case r.Reply == nil && r.End != nil && r.End.Retry:
		status = "asks to run again"
	case r.Reply == nil: // it was told of when there was one
		return
	case e.Kind == events.Fetch:
		status = fmt.Sprint(r.Reply.Status)
	default:
		status = "✓"
	}
	what := e.Kind.String()
	if e.Kind == events.Fetch {
		what = e.Method + " " + e.URL
	}
	took := time.Since(r.Attempt.Start).Round(10 * time.Microsecond)
	fmt.Fprintf(out, "%s event %s/%s  %s  %s  %s  event %s, attempt %d\n",
		time.Now().Format("15:04:05.000"), e.Owner, e.Worker, printable(what), status, took, printable(e.ID), r.Attempt.Number)
}
