package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// maxZips is the largest number of CompressionStreams and DecompressionStreams of a run that may be under way at once.
// Each holds up to compression.Holds bytes outside the heap to which the limit applies.
const maxZips = 16

// zip is a CompressionStream or DecompressionStream of a run. It ends with its data, when JavaScript closes it, or with
// the run.
type zip struct {
	*offload.Zip
	close func() // frees its memory; may be called again
}

var errZipGone = errors.New("the stream belongs to an event that is over")

// zips are the streams of a run.
type zips struct {
	of map[float64]*zip // by id; nil until the first
}

// step carries out a step of a stream: request, stream, format, compress, whether it is the first, bytes, whether it
// is the last.
func (s *zips) step(r *Calls, in *v8x.Commands) {
	c, id := r.register(in.Number()), in.Number()
	format, compress, first := in.Text(), in.Bool(), in.Bool()
	z, err := s.of[id], errZipGone
	if first {
		z, err = s.open(r, id, format, compress)
	}
	if z == nil {
		r.answer(c, true, worked(c, offload.Failed(err)))
		return
	}
	if z.Compresses() && in.Left() <= zipHere {
		r.offloads.onThread(r, c, func(func() error) (offload.Product, time.Duration) { return z.Step(in.View(), in.Bool()) })
		return
	}
	r.offloads.inPool(r, c, in.Left(), !z.Compresses(), func() offload.Job {
		args := in.Detach()
		return func(func() error) (offload.Product, time.Duration) { return z.Step(args.View(), args.Bool()) }
	})
}

// zipHere is the largest number of bytes of commands that a thread compresses itself.
const zipHere = 4 << 10

func (s *zips) open(r *Calls, id float64, format string, compress bool) (*zip, error) {
	if len(s.of) >= maxZips {
		return nil, fmt.Errorf("too many streams: at most %d that compress or decompress may be under way", maxZips)
	}
	holds := compression.Holds(format)
	if err := r.run.Hold(holds); err != nil {
		return nil, err
	}
	made, err := r.process.Offload.NewZip(format, compress)
	if err != nil {
		r.run.Drop(holds)
		return nil, err
	}
	z := &zip{Zip: made}
	end := sync.OnceFunc(func() {
		z.Close()
		r.run.Drop(holds)
	})
	unwatch := context.AfterFunc(r.callContext(), end)
	z.close = func() { unwatch(); end() }
	if s.of == nil {
		s.of = map[float64]*zip{}
	}
	s.of[id] = z
	return z, nil
}

// end closes a stream.
func (s *zips) end(id float64) {
	if z := s.of[id]; z != nil {
		z.close()
		delete(s.of, id)
	}
}
