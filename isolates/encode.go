package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
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

// encodeFetch encodes the call of a fetch handler, or of a method of an entrypoint, and returns the body.
func encodeFetch(c *v8x.Call, r *run) (body []byte) {
	e := r.attempt.Event
	if s := e.Service; s != nil && s.Method != "" {
		c.Reset(js.OpMethodEvent).Number(float64(r.id)).String(s.Entrypoint).String(s.Method).Body()
		return e.Body
	}
	c.Reset(js.OpFetchEvent).Number(float64(r.id)).String(e.Method).String(e.URL)
	if len(e.HTTPHeaders) > 0 {
		c.Strings(egress.HeaderTexts(e.HTTPHeaders))
	} else {
		c.Null()
	}
	if len(e.Body) > 0 {
		c.Content()
		body = e.Body
	} else {
		c.Null()
	}
	if e.Requester != nil || e.Parts != nil {
		c.Number(firstGrant(e))
		switch {
		case e.Parts == nil:
			c.Null()
		case e.Parts.Size > 0:
			c.Number(float64(e.Parts.Size))
		default:
			c.Number(-1)
		}
	}
	if s := e.Service; s != nil {
		c.Strings([]string{s.Entrypoint, s.CF})
	}
	return body
}

func userHeaders(e *lifecycle.Delivery) []string {
	var list []string
	e.UserHeaders(func(name, value string) { list = append(list, name, value) })
	return list
}

// firstGrant is how many bytes of the reply's body may be produced at first. 0 = the requester wants the whole body at
// once.
func firstGrant(e *lifecycle.Delivery) float64 {
	if e.Requester == nil {
		return 0
	}
	return float64(min(e.Requester.Credit, FirstCredit))
}
