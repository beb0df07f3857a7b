package hostcalls

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// maxRewriters is the largest number of pages of a run that HTMLRewriters may have under way at once. Each holds
// offload.RewriteMemory bytes outside the heap to which the limit applies.
const maxRewriters = 8

// rewriteHere is the largest cost of a step that a thread does itself.
const rewriteHere = 64 << 10

// rewriting is a page on its way. It ends with its bytes, when JavaScript closes it, or with the run.
type rewriting struct {
	*offload.Rewrite
	close func() // frees its memory when no step is under way; may be called again
}

// rewriters are the pages of a run.
type rewriters struct {
	of    map[float64]*rewriting // by id; nil until the first
	holds atomic.Int32           // pages that hold memory, also those that are closed while a step is under way
}

// step carries out a step of a page: request, page, whether it is the first, selectors, what is asked for with each,
// bytes, whether they are the last.
func (s *rewriters) step(r *Calls, in *v8x.Commands) {
	c, id := r.register(in.Number()), in.Number()
	first, selectors, handlers := in.Bool(), in.Strings(), in.View()
	w, err := s.of[id], errRewritingGone
	if first {
		w, err = s.open(r, id, selectors, handlers)
	}
	if w == nil {
		r.answer(c, true, worked(c, offload.Failed(err)))
		return
	}
	if w.Cost(in.Left()) <= rewriteHere {
		r.offloads.onThread(r, c, func(goOn func() error) (offload.Product, time.Duration) {
			return w.Step(in.View(), in.Bool(), goOn)
		})
		return
	}
	r.offloads.inPool(r, c, w.Holds(in.Left()), false, func() offload.Job {
		args := in.Detach()
		return func(goOn func() error) (offload.Product, time.Duration) {
			return w.Step(args.View(), args.Bool(), goOn)
		}
	})
}

var errRewritingGone = fmt.Errorf("the page belongs to an event that is over")

func (s *rewriters) open(r *Calls, id float64, selectors []string, handlers []byte) (*rewriting, error) {
	if s.holds.Load() >= maxRewriters {
		return nil, fmt.Errorf("too many pages: at most %d may be under way", maxRewriters)
	}
	if err := r.run.Hold(offload.RewriteMemory); err != nil {
		return nil, err
	}
	made, err := offload.NewRewrite(selectors, handlers)
	if err != nil {
		r.run.Drop(offload.RewriteMemory)
		return nil, err
	}
	s.holds.Add(1)
	end := func() {
		made.Close(func() {
			s.holds.Add(-1)
			r.run.Drop(offload.RewriteMemory)
		})
	}
	unwatch := context.AfterFunc(r.callContext(), end)
	if s.of == nil {
		s.of = map[float64]*rewriting{}
	}
	s.of[id] = &rewriting{Rewrite: made, close: func() { unwatch(); end() }}
	return s.of[id], nil
}

// end forgets a page.
func (s *rewriters) end(id float64) {
	if w := s.of[id]; w != nil {
		w.close()
		delete(s.of, id)
	}
}
