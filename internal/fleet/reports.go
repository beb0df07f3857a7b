package fleet

import (
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/tail"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// watchedSource gives threads their work, and lets tails and one observer see their reports. Without them this costs
// two loads for each batch of reports.
type watchedSource struct {
	isolates.Source
	tails *tail.Hub
	see   atomic.Pointer[func(*lifecycle.Report)]
}

// observe sets f, which is called with each report before the report is judged. The call is on the thread that made the
// report. f must not keep it.
func (o *watchedSource) observe(f func(*lifecycle.Report)) { o.see.Store(&f) }

// Report passes on the reports of attempts.
func (o *watchedSource) Report(thread int, reports []lifecycle.Report) {
	o.tails.Reports(reports)
	if see := o.see.Load(); see != nil {
		for i := range reports {
			(*see)(&reports[i])
		}
	}
	o.Source.Report(thread, reports)
}

// OnReport sets f, which is called with each report before the report is judged. The call is on the thread that made
// the report. f must not keep the report.
func (p *Process) OnReport(f func(*lifecycle.Report)) { p.reports.observe(f) }

// OnTick sets f, which is called with each schedule tick that this process makes.
func (p *Process) OnTick(f func(owner, worker, schedule string, tick time.Time)) {
	p.consumer.OnTick(f)
}
