package hostcalls

import (
	"errors"
	"io"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// pullID is the id, among a run's calls, of the read of a part. Ids that JavaScript makes are positive. JavaScript
// pulls one part at a time.
const pullID = -1

// pullPart reads the next part of the event's body that has bytes.
func (r *Calls) pullPart() {
	parts := r.run.Attempt().Event.Parts
	if parts == nil || r.pending[pullID] != nil {
		return
	}
	c := r.register(pullID)
	i, ctx := r.parts, r.callContext()
	go func() {
		var part []byte
		var err error
		// An empty part is not an answer: the stream asks once, and waits until it gets bytes, the end or an error.
		for len(part) == 0 && err == nil && (parts.Live || i < parts.N) {
			if part, err = parts.Read(ctx, i); err == nil {
				i++
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		n := len(part)
		if n > 0 {
			if err = r.run.Hold(n); err != nil {
				part, n = nil, 0
			}
		}
		r.run.Later(func() {
			defer r.run.Drop(n) // also if the turn goes away
			c.deliver(r, true, func(call *v8x.Call) []byte {
				r.parts = i
				call.Reset(js.OpPart).Number(float64(r.run.ID()))
				switch {
				case err != nil:
					call.Null().String(err.Error())
				case n > 0:
					call.Body()
				}
				return part
			})
		})
	}()
}
