package isolates

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/compression"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// maxZips is how many CompressionStreams and DecompressionStreams of a run may be under way at once. Each holds up to zipBytes
// outside the heap that is limited.
const (
	maxZips  = 16
	zipBytes = 5 << 18
)

// zip is a CompressionStream or DecompressionStream of a run. It ends with its data, when JavaScript lets go of it, or with
// the run.
type zip struct {
	compressor   *compression.Compressor
	decompressor *compression.Decompressor
	close        func() // lets go of what it holds; may be called again
}

func (o *offload) newZip(format string, compress bool) (z *zip, err error) {
	z = &zip{}
	if compress {
		z.compressor, err = o.compressors.New(format)
	} else {
		z.decompressor, err = compression.NewDecompressor(format, ownCPU)
	}
	return z, err
}

// What a step tells JavaScript beside its bytes.
const (
	zipMore  = 1 // there is more to come of what was given
	zipWrong = 2 // the data is wrong after these bytes; what is wrong follows
	zipEnd   = 4 // that was the whole of the data
)

// step does a step in the offload. CPU time that was used on another thread is given beside the product.
func (z *zip) step(in []byte, last bool) (product, time.Duration) {
	if z.compressor != nil {
		out, err := z.compressor.Step(in, last)
		return severalBytes(err, out, []byte{0}), 0
	}
	a := z.decompressor.Step(in, last)
	switch {
	case a.Err != nil && len(a.Out) > 0:
		return severalBytes(nil, a.Out, []byte{zipWrong}, []byte(a.Err.Error())), a.CPU
	case a.More:
		return severalBytes(nil, a.Out, []byte{zipMore}), a.CPU
	case a.End:
		return severalBytes(a.Err, a.Out, []byte{zipEnd}), a.CPU
	}
	return severalBytes(a.Err, a.Out, []byte{0}), a.CPU
}

var errZipGone = errors.New("the stream belongs to an event that is over")

// zipStep takes a step of a stream: request, stream, format, compress, is it the first, bytes, is it the last.
func (t *thread) zipStep(r *run, in *v8x.Commands) {
	c, id := r.register(in.Number()), in.Number()
	format, compress, first := in.Text(), in.Bool(), in.Bool()
	z, err := r.zips[id], errZipGone
	if first {
		z, err = t.openZip(r, id, format, compress)
	}
	if z == nil {
		t.answer(r, c, true, worked(c, product{err: err}))
		return
	}
	if z.compressor != nil && in.Left() <= zipHere {
		t.here(r, c, func(func() error) (product, time.Duration) { return z.step(in.View(), in.Bool()) })
		return
	}
	t.elsewhere(r, c, in.Left(), z.decompressor != nil, func() job {
		args := in.Detach()
		return func(func() error) (product, time.Duration) { return z.step(args.View(), args.Bool()) }
	})
}

// zipHere is up to how many bytes of commands a thread compresses a piece itself.
const zipHere = 4 << 10

func (t *thread) openZip(r *run, id float64, format string, compress bool) (*zip, error) {
	if len(r.zips) >= maxZips {
		return nil, fmt.Errorf("too many streams: at most %d that compress or decompress may be under way", maxZips)
	}
	if err := t.pool.hold(r, zipBytes); err != nil {
		return nil, err
	}
	z, err := t.pool.offload.newZip(format, compress)
	if err != nil {
		t.pool.drop(r, zipBytes)
		return nil, err
	}
	end := sync.OnceFunc(func() {
		if z.decompressor != nil {
			z.decompressor.Close()
		}
		t.pool.drop(r, zipBytes)
	})
	unwatch := context.AfterFunc(r.context(), end)
	z.close = func() { unwatch(); end() }
	if r.zips == nil {
		r.zips = map[float64]*zip{}
	}
	r.zips[id] = z
	return z, nil
}

// zipClose lets go of a stream.
func (r *run) zipClose(id float64) {
	if z := r.zips[id]; z != nil {
		z.close()
		delete(r.zips, id)
	}
}
