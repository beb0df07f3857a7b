package hostcalls

import (
	"fmt"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// sends are the tasks that a run has sent to other workers.
type sends struct {
	sent int // so far
}

// store stores tasks for another worker of the owner.
func (s *sends) store(r *Calls, in *v8x.Commands) {
	n := in.Left() + sendBytes
	c := r.register(in.Number())
	send, err := bindings.ReadSend(in)
	if err == nil {
		n += len(send.Tasks) * taskBytes
		err = s.admit(r, len(send.Tasks))
	}
	if err == nil {
		err = r.run.Hold(n)
	}
	if err != nil {
		r.answer(c, true, queued(c, err))
		return
	}
	send.Keep()
	owner := r.run.Attempt().Worker.Owner
	span := r.run.Attempt().Begin(send.Operation())
	if span != nil {
		send.Trace(span.Context())
	}
	ctx := r.callContext()
	go func() {
		err := send.Do(ctx, r.process.Host, owner)
		lifecycle.EndSpan(span, err)
		r.run.Drop(n)
		r.answer(c, true, queued(c, err))
	}()
}

// admit counts n tasks of the run, or returns an error when it may not send so many more.
func (s *sends) admit(r *Calls, n int) error {
	if n > r.run.Limits().Sends-s.sent && !guard.SendRates.Off() {
		return fmt.Errorf("too many sends: at most %d per event (limits.sends)", r.run.Limits().Sends)
	}
	s.sent += n
	return nil
}

// sendBytes is what a send() under way counts as, in addition to its bytes: a goroutine waits for it.
const sendBytes = 8 << 10

// taskBytes is what each of its tasks counts as, in addition to its bytes, while it is published.
const taskBytes = 1 << 10

// queued is the answer to a send; err is nil when the task is stored.
func queued(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(js.OpQueued).Number(c.id)
		if err != nil {
			call.String(err.Error())
		} else {
			call.Null()
		}
		return nil
	}
}
