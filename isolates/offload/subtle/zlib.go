package subtle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Bounds of what is decompressed while JavaScript waits, when no limit of the event can end it: bytes of the result,
// which take about a fifth of a second, and CPU time. Data may take long and have no content.
const (
	maxNow     = 64 << 20
	maxNowTime = 250 * time.Millisecond
)

// errLong has a text that js/node/zlib_options.js has, too.
var errLong = errors.New("decompression takes too long while the worker waits: use the form with a callback, or a stream")

// forNow returns goOn with the bound of CPU time. The caller must stay on its thread.
func forNow(goOn func() error) func() error {
	began := perowner.ThreadTime()
	return func() error {
		if perowner.ThreadTime()-began > maxNowTime {
			return errLong
		}
		return goOn()
	}
}

// zip carries out a function of node:zlib.
func zip(op int, q *v8x.Commands, goOn func() error) offload.Product {
	switch op {
	case opDeflatePart:
		level, before, part := int(q.Int()), q.View(), q.View()
		out, sum, err := compression.DeflatePart(level, before, part, int(q.Int()), uint32(q.Int()), q.Bool())
		return offload.List(err, out, binary.BigEndian.AppendUint32(nil, sum))
	case opInflateAll:
		format, data := q.Text(), q.View()
		likely, limit := int(q.Int()), int(q.Int())
		if likely < 0 || limit < 0 || limit > maxNow {
			return offload.Failed(fmt.Errorf("at most %d bytes are decompressed at once", maxNow))
		}
		out, err := compression.Decompress(format, data, likely, limit, q.Bool(), forNow(goOn))
		if errors.Is(err, compression.ErrTooMuch) {
			return offload.Bool(false, nil)
		}
		return offload.Bytes(out, err)
	case opBrotli:
		return offload.Bytes(compression.Brotli(int(q.Int()), int(q.Int()), q.View(), goOn))
	}
	return offload.Failed(errSubtle)
}
