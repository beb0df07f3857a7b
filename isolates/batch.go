package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// encodeBatch encodes the call of a queue handler, and returns the bodies of its events, one after the other.
// js/events/batch.js reads it.
func encodeBatch(c *v8x.Call, r *run) (bodies []byte) {
	batch := r.attempt.Batch
	ids, numbers := make([]string, len(batch)), make([]float64, 0, 4*len(batch))
	var headers []string
	size := 0
	for _, e := range batch {
		size += len(e.Body)
	}
	if len(batch) > 1 {
		bodies = make([]byte, 0, size)
	}
	for i, e := range batch {
		before := len(headers)
		e.UserHeaders(func(name, value string) { headers = append(headers, name, value) })
		ids[i] = e.ID
		numbers = append(numbers, float64(storedAt(r, e).UnixMilli()), float64(max(1, e.Attempt)), float64(len(e.Body)),
			float64(len(headers)-before))
		if len(batch) > 1 {
			bodies = append(bodies, e.Body...)
		} else {
			bodies = e.Body
		}
	}
	c.Reset(js.OpBatch).Number(float64(r.id)).String(r.attempt.Worker.Name).Strings(ids).Numbers(numbers...).
		Strings(headers).Content()
	return bodies
}

// storedAt is when the event of a run was stored, or began to run if it is stored nowhere.
func storedAt(r *run, e *lifecycle.Delivery) time.Time {
	if e.Stored.IsZero() {
		return r.start
	}
	return e.Stored
}

// decide notes what the handler decided about an event of its batch.
func (r *run) decide(in *v8x.Commands) {
	i, what, delay := in.Int(), lifecycle.Decision(in.Int()), in.Number()
	if i < 0 || i >= int64(len(r.attempt.Batch)) {
		return
	}
	if r.end.Items == nil {
		r.end.Items = make([]lifecycle.Item, len(r.attempt.Batch))
	}
	if r.end.Items[i].Decision != lifecycle.Undecided {
		return
	}
	r.end.Items[i] = lifecycle.Item{Decision: what, Delay: time.Duration(min(delay, 1e9) * float64(time.Second))}
	if what == lifecycle.Failed {
		r.end.Items[i].Failure = events.NewFailure(events.Reason(in.Text()), in.Clip(maxText), "")
	}
}
