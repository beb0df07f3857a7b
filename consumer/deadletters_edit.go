package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// ErrChanged is the error of an edit that another one, a replay or a removal came before.
var ErrChanged = errors.New("it was changed meanwhile")

// headerRollup makes JetStream replace what it has of a subject by the message, in one step.
const headerRollup = "Nats-Rollup"

// Edit changes a dead letter where it is stored, and returns it with its new number; a crash leaves the old one or the new one, never both or
// none. Its identity, history and counts stay. One of which nothing is changed keeps its number, too. The error is ErrNoDeadLetter, ErrChanged, or says what of the edit is not allowed.
func (d *DeadLetters) Edit(ctx context.Context, seq uint64, e events.Edit) (*events.DeadLetter, error) {
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
	// Of events of an event stream that was deleted and made anew there may be two under one subject.
	first, err := stored.Get(ctx, d.js.Conn(), StreamDead, stored.Request{Seq: 1, Next: m.Subject})
	if err == nil && first.Sequence < seq {
		return nil, fmt.Errorf("dead letter %d is stored under the same subject as the older %d: replay or remove that first", seq, first.Sequence)
	}
	h := nats.Header(edited.Encode())
	h.Set(headerRollup, "sub")
	h.Set(headerExpectLastSubjectSeq, strconv.FormatUint(seq, 10))
	ack, err := d.js.PublishMsg(ctx, &nats.Msg{Subject: m.Subject, Header: h, Data: edited.Body}, jetstream.WithExpectStream(StreamDead))
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence:
		return nil, fmt.Errorf("dead letter %d: %w", seq, ErrChanged)
	case err != nil:
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	edited.Seq = ack.Sequence
	return edited, nil
}
