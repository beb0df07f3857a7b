package hostcalls

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// upload is the body of a subrequest that stays in JavaScript until it is written. Each piece is requested when the one
// before it is being sent.
type upload struct {
	ctx context.Context //nolint:containedctx // the context of the call
	r   *Calls
	c   *call

	offset int64 // of the next piece
	piece  []byte
	last   bool        // nothing comes after piece
	closed atomic.Bool // nothing is read any more: who closes it may be another than who reads
}

// piece is a part of a request body.
type piece struct {
	offset int64
	bytes  []byte
	last   bool
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	for len(u.piece) == 0 {
		if u.last || u.closed.Load() {
			return 0, io.EOF
		}
		if err := u.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.piece)
	u.piece = u.piece[n:]
	return n, nil
}

// next waits for the next piece.
func (u *upload) next() error {
	from := u.offset
	u.r.run.Later(func() {
		if !u.r.over && u.r.pending[u.c.id] == u.c {
			u.r.run.Turn(u.r.run.Call().Reset(js.OpUploadWanted).Number(u.c.id).Number(float64(from)).Bytes(), nil)
		}
	})
	for {
		select {
		case got := <-u.c.pieces:
			if got.offset != from { // the piece was for another reader, whose connection broke
				continue
			}
			u.offset += int64(len(got.bytes))
			u.piece, u.last = got.bytes, got.last
			return nil
		case <-u.ctx.Done():
			return u.ctx.Err()
		}
	}
}

// Close implements io.Closer.
func (u *upload) Close() error {
	u.closed.Store(true)
	return nil
}

var errPiece = errors.New("isolates: a piece of a request's body that is too long")

// uploadPiece is the largest number of bytes in a piece. fetch/upload.js has the same bound.
const uploadPiece = 64 << 10

// takePiece takes a piece from JavaScript: request, offset, bytes, whether it is the last. It replaces a piece that no
// reader took.
func (f *fetches) takePiece(r *Calls, in *v8x.Commands) {
	c := r.pending[in.Number()]
	if c == nil || c.pieces == nil {
		return
	}
	p := piece{offset: in.Int()}
	view := in.View()
	p.last = in.Bool()
	if len(view) > uploadPiece {
		r.answer(c, true, fetchFailed(c, errPiece))
		return
	}
	p.bytes = slices.Clone(view)
	select {
	case <-c.pieces:
	default:
	}
	c.pieces <- p
}
