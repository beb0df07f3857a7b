package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// ErrChanged is the error of an edit when another edit, a replay or a removal came first.
var ErrChanged = errors.New("it was changed meanwhile")

// Edit changes a dead letter where it is stored, and returns it with its new number; a crash leaves the old one or the
// new one, never both or none. Its identity, history and counts stay. A letter that the edit does not change keeps its
// number, too. The error is ErrNoDeadLetter, ErrChanged, or says which part of the edit is not allowed.
func (d *Store) Edit(ctx context.Context, seq uint64, e events.Edit) (*events.DeadLetter, error) {
	m, err := d.get(ctx, seq)
	if err != nil {
		return nil, err
	}
	letter, err := decodeDead(m)
	if err != nil {
		return nil, err
	}
	edited, err := letter.Edit(e, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	if edited.SameEvent(letter) {
		return letter, nil
	}
	// If the event stream was deleted and created again, two events may have letters under one subject.
	first, err := stored.Get(ctx, d.js.Conn(), events.StreamDead, stored.Request{Seq: 1, Next: m.Subject})
	if err == nil && first.Sequence < seq {
		return nil, fmt.Errorf("dead letter %d is stored under the same subject as the older %d: replay or remove that first", seq, first.Sequence)
	}
	changed := letterMessage(edited, m.Subject)
	changed.Header.Set(jsapi.HeaderRollup, "sub")
	changed.Header.Set(jsapi.HeaderExpectLastSubjectSeq, strconv.FormatUint(seq, 10))
	ack, err := d.js.PublishMsg(ctx, changed, jetstream.WithExpectStream(events.StreamDead))
	switch {
	case jsapi.IsWrongLastSequence(err):
		return nil, fmt.Errorf("dead letter %d: %w", seq, ErrChanged)
	case err != nil:
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	edited.Seq = ack.Sequence
	return edited, nil
}
