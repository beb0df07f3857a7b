package pipe

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// Owner is who a pipe is charged to.
type Owner interface {
	// Hold charges n bytes of memory, Drop gives them back.
	Hold(n int) error
	Drop(n int)
	// Moved charges the time to move n bytes.
	Moved(n int)
}

// Parts moves the body of an event, from part i on, to a sink, and closes that.
func Parts(ctx context.Context, parts *events.Parts, i int, to Sink, owner Owner) {
	to.Close(moveParts(ctx, parts, i, to, owner))
}

func moveParts(ctx context.Context, parts *events.Parts, i int, to Sink, owner Owner) error {
	for ; parts.Live || i < parts.N; i++ {
		part, err := parts.Read(ctx, i)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = owner.Hold(len(part))
		}
		if err != nil {
			return err
		}
		n := len(part)
		free, err := to.Write(ctx, part)
		owner.Drop(n)
		owner.Moved(n)
		if free && parts.Free != nil {
			parts.Free(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pieceBytes is how much of a value moves at once.
const pieceBytes = 256 << 10

// Value moves data to a sink, and closes that. held bytes are charged for data: the owner gets them back.
func Value(ctx context.Context, data []byte, held int, to Sink, owner Owner) {
	var err error
	for rest := data; len(rest) > 0 && err == nil; {
		n := min(len(rest), pieceBytes)
		_, err = to.Write(ctx, rest[:n:n])
		owner.Moved(n)
		rest = rest[n:]
	}
	owner.Drop(held)
	to.Close(err)
}

// Tap is a source that some other goroutine pushes: it passes each piece to the reader that JavaScript is, until the
// Tap has a sink. Safe for use by any goroutine.
type Tap struct {
	mu   sync.Mutex
	sink Sink
	over bool
	err  error
}

// To has the rest of the body go to a sink. It closes the sink at once if the body is over already.
func (t *Tap) To(s Sink) {
	t.mu.Lock()
	t.sink = s
	over, err := t.over, t.err
	t.mu.Unlock()
	if over {
		s.Close(err)
	}
}

// Sink returns where the body goes; nil = JavaScript reads it.
func (t *Tap) Sink() Sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sink
}

// Over says that the body is complete, or why it is not. Only the first call counts.
func (t *Tap) Over(err error) {
	t.mu.Lock()
	sink, before := t.sink, t.over
	t.over, t.err = true, err
	t.mu.Unlock()
	if sink != nil && !before {
		sink.Close(err)
	}
}
