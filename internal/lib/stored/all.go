package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// maxAhead is how many messages a reader asks for at once. The time of a request is mostly that of its way.
	maxAhead = 32
	// aheadBytes is how many bytes it may get at once from then on.
	aheadBytes = 1 << 20
)

// All iterates over the messages of a subject, which may have wildcards, from a sequence on. It sends one request for
// each message, up to 32 at a time while the messages follow one another without gaps. A message that is removed
// meanwhile may or may not be seen. An error, with a nil message, ends the iteration.
func All(ctx context.Context, nc *nats.Conn, stream, subject string, from uint64) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		r := &reader{nc: nc, stream: stream, subject: subject, ahead: 1}
		defer r.close()
		for next := max(1, from); ; {
			list, err := r.read(ctx, next)
			for _, m := range list {
				if !yield(m, nil) {
					return
				}
				next = m.Sequence + 1
			}
			if errors.Is(err, ErrNone) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("stream %s: %w", stream, err))
				return
			}
		}
	}
}

// reader reads the messages of a subject in their order.
type reader struct {
	nc              *nats.Conn
	stream, subject string
	ahead           uint64             // messages to ask for at once
	answers         *nats.Subscription // nil: there was only one request at a time
}

// read returns the next messages from a sequence on, at least one. The error is ErrNone when there are no more; then
// it comes with the last ones.
func (r *reader) read(ctx context.Context, from uint64) (list []*Message, err error) {
	ctx, cancel := within(ctx)
	defer cancel()
	all, err := r.ask(ctx, from)
	last, bytes := from-1, 0
	for _, a := range all {
		if a.err != nil {
			return list, a.err
		}
		// A gap makes several requests find the message behind it. Without its guard, a test needs a message to be
		// believed that says it is an earlier one.
		if a.message.Sequence > last || guard.StoredHeaders.Off() {
			list, last = append(list, a.message), a.message.Sequence
			bytes += len(a.message.Data)
		}
	}
	if err == nil && len(list) == 0 {
		return nil, errors.New("JetStream answers with a message before the one that was asked for")
	}
	switch {
	case last != from+r.ahead-1 || bytes > aheadBytes:
		r.ahead = max(1, r.ahead/2)
	case bytes < aheadBytes/2:
		r.ahead = min(maxAhead, 2*r.ahead)
	}
	return list, err
}

// answer is the answer to one request.
type answer struct {
	message *Message
	err     error
}

// ask asks for the first messages from each of the next sequences on. Without an error there is an answer for each.
func (r *reader) ask(ctx context.Context, from uint64) ([]answer, error) {
	if r.ahead == 1 {
		m, err := Get(ctx, r.nc, r.stream, Request{Seq: from, Next: r.subject})
		return []answer{{m, err}}, nil
	}
	var err error
	if r.answers == nil {
		if r.answers, err = r.nc.SubscribeSync(r.nc.NewInbox() + ".*"); err != nil {
			return nil, err
		}
	}
	inbox := strings.TrimSuffix(r.answers.Subject, "*")
	for n := range r.ahead {
		body, err := json.Marshal(Request{Seq: from + n, Next: r.subject})
		if err != nil {
			return nil, err
		}
		if err := r.nc.PublishRequest(Subject(r.stream), inbox+strconv.FormatUint(from+n, 10), body); err != nil {
			return nil, err
		}
	}
	all := make([]answer, r.ahead)
	for missing := r.ahead; missing > 0; {
		m, err := r.answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, inbox), 10, 64)
		if n -= from; err != nil || n >= r.ahead || all[n] != (answer{}) {
			continue // of requests before, or sent by somebody else
		}
		all[n].message, all[n].err = Parse(m.Data)
		missing--
	}
	return all, nil
}

func (r *reader) close() {
	if r.answers != nil {
		_ = r.answers.Unsubscribe()
	}
}
