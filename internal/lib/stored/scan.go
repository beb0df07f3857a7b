package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// scanBatch is how many messages a scan asks for at once. So many may be in memory, however long they are.
	scanBatch = 64
	// headersBatch is scanBatch of a scan that reads no bodies, and headers that the fleet wrote.
	headersBatch = 5000
	// scanLife is how long the server keeps the consumer of a scan that has died.
	scanLife = 10 * time.Second
	// ackPrefix begins the reply subject of each message that a consumer delivers. The server writes this subject. What
	// the server says itself, for example that there are no more messages, has no such subject. So no header of a
	// publisher is taken for a word of the server.
	ackPrefix = "$JS.ACK."
)

// Scan does what All does, with a consumer: it costs a few requests more, and a sixth for each message. It is for those
// who look at many. The user needs the permission to make consumers of the stream.
func Scan(ctx context.Context, nc *nats.Conn, stream, subject string, from uint64) iter.Seq2[*Message, error] {
	return scanOf(ctx, nc, stream, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, from),
	})
}

// ScanAny scans all messages of several subjects, which may have wildcards and do not overlap.
func ScanAny(ctx context.Context, nc *nats.Conn, stream string, subjects []string) iter.Seq2[*Message, error] {
	return scanOf(ctx, nc, stream, jetstream.ConsumerConfig{
		FilterSubjects: subjects, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
}

func scanOf(ctx context.Context, nc *nats.Conn, stream string,
	c jetstream.ConsumerConfig) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		s, err := open(ctx, nc, stream, scanBatch, c)
		if err != nil {
			yield(nil, fmt.Errorf("stream %s: %w", stream, err))
			return
		}
		s.Messages(ctx)(yield)
	}
}

// Headers makes a scan of the headers of messages, without their bodies. subjects may have wildcards, and do not
// overlap. If last is set, it reads only the last message of each subject. The user needs the permission to make
// consumers of the stream.
func Headers(ctx context.Context, nc *nats.Conn, stream string, subjects []string, last bool) (*Scanner, error) {
	deliver := jetstream.DeliverAllPolicy
	if last {
		deliver = jetstream.DeliverLastPerSubjectPolicy
	}
	return open(ctx, nc, stream, headersBatch, jetstream.ConsumerConfig{FilterSubjects: subjects, DeliverPolicy: deliver,
		HeadersOnly: true})
}

// HeadersFrom makes a scan of the headers of all messages of a stream with a sequence of at least from, without their
// bodies. It asks for as few at once as Scan: owners may have written the headers, which may be as long as messages.
// The user needs the permission to make consumers of the stream.
func HeadersFrom(ctx context.Context, nc *nats.Conn, stream string, from uint64) (*Scanner, error) {
	return open(ctx, nc, stream, scanBatch, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, from), HeadersOnly: true,
	})
}

// Scanner reads messages of a stream with a consumer of its own. It is used once, by Messages or Close.
type Scanner struct {
	// Pending is how many messages there were when the scan began.
	Pending uint64

	js     jetstream.JetStream
	nc     *nats.Conn
	stream string
	name   string // of the consumer
	sub    *nats.Subscription
	came   chan *nats.Msg // other ways to wait for a message believe a publisher's Status
	batch  int            // messages to ask for at once
	asked  int            // messages that were asked for and have not come
}

// open makes a scan that asks for at most most messages at once.
func open(ctx context.Context, nc *nats.Conn, stream string, most uint64,
	c jetstream.ConsumerConfig) (*Scanner, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	c.AckPolicy, c.MemoryStorage, c.Replicas, c.InactiveThreshold = jetstream.AckNonePolicy, true, 1, scanLife
	made, err := js.CreateConsumer(ctx, stream, c)
	if err != nil {
		return nil, err
	}
	info := made.CachedInfo()
	batch := int(min(most, info.NumPending+1)) // one more than there are: so the same request gets the server's last word
	s := &Scanner{Pending: info.NumPending, js: js, nc: nc, stream: stream, name: info.Name, batch: batch}
	s.came = make(chan *nats.Msg, batch+1) // and that word
	if s.sub, err = nc.ChanSubscribe(nc.NewInbox(), s.came); err != nil {
		return nil, err
	}
	return s, nil
}

// Messages iterates over the messages, and closes the scan. A message that is removed meanwhile may or may not be seen.
// An error, with a nil message, ends the iteration: without one, nothing is missing.
func (s *Scanner) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		defer s.Close()
		if s.Pending == 0 {
			return
		}
		for {
			m, err := s.next(ctx)
			if errors.Is(err, ErrNone) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("stream %s: %w", s.stream, err))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// next returns the next message. The error is ErrNone at the end.
func (s *Scanner) next(ctx context.Context) (*Message, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	if s.asked == 0 {
		request, err := json.Marshal(struct {
			Batch  int  `json:"batch"`
			NoWait bool `json:"no_wait"`
		}{s.batch, true})
		if err != nil {
			return nil, err
		}
		if err := s.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+s.stream+"."+s.name, s.sub.Subject, request); err != nil {
			return nil, err
		}
		s.asked = s.batch
	}
	var m *nats.Msg
	select {
	case m = <-s.came:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !strings.HasPrefix(m.Reply, ackPrefix) { // of the server: there are no more, or the consumer is gone
		if status := m.Header.Get("Status"); status != "404" {
			return nil, fmt.Errorf("a scan ended: %s %s", status, m.Header.Get("Description"))
		}
		return nil, ErrNone
	}
	s.asked--
	facts, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	return &Message{Subject: m.Subject, Sequence: facts.Sequence.Stream, Time: facts.Timestamp, Header: m.Header,
		Data: m.Data}, nil
}

// Close ends the scan.
func (s *Scanner) Close() {
	_ = s.sub.Unsubscribe()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.js.DeleteConsumer(ctx, s.stream, s.name) // the server would remove it anyway
}
