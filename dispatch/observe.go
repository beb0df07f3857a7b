package dispatch

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// observed calls the observers. The lock must not be held. Without observers each method costs one load.
type observed struct{ *lifecycle.Observers }

func (o observed) queued(batch []*events.Event) {
	for _, one := range o.All() {
		for _, e := range batch {
			if e.Direct() {
				one.Delivered(e)
			}
			one.Queued(e)
		}
	}
}

func (o observed) started(batch []*lifecycle.Attempt) {
	for _, one := range o.All() {
		for _, a := range batch {
			one.Started(a)
		}
	}
}

// reported is called before the reports are judged: afterwards an event may already run again.
func (o observed) reported(reports []lifecycle.Report) {
	for _, one := range o.All() {
		for i := range reports {
			r := &reports[i]
			if r.Reply != nil {
				one.Replied(r)
			}
			if r.End != nil {
				one.Ended(r)
			}
		}
	}
}

func (o observed) settled(batch []lifecycle.Settlement) {
	for _, one := range o.All() {
		for i := range batch {
			one.Settled(&batch[i])
		}
	}
}
