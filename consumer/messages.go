package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
)

// messages goes through what stream has of a subject, which may have wildcards, from a sequence on, one request each. What is removed
// meanwhile may be seen or not. An error, with a nil message, ends it.
func messages(ctx context.Context, stream jetstream.Stream, subject string, from uint64) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		filter := jetstream.WithGetMsgSubject(subject)
		for seq := from; ; seq++ {
			m, err := stream.GetMsg(ctx, seq, filter)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("stream %s: %w", stream.CachedInfo().Config.Name, err))
				return
			}
			if !yield(m, nil) {
				return
			}
			seq = m.Sequence
		}
	}
}
