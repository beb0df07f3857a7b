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
	return func(yield func(*Message, error) bool) {
		s, err := openScan(ctx, nc, stream, subject, from)
		if err != nil {
			yield(nil, fmt.Errorf("stream %s: %w", stream, err))
			return
		}
		defer s.close()
		for {
			m, err := s.next(ctx)
			if errors.Is(err, ErrNone) {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// scan is one consumer.
type scan struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	stream string
	name   string // of the consumer
	sub    *nats.Subscription
	came   chan *nats.Msg // other ways to wait for a message believe a publisher's Status
	asked  int            // messages that were asked for and have not come
}

func openScan(ctx context.Context, nc *nats.Conn, stream, subject string, from uint64) (*scan, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	c, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, from),
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: scanLife,
	})
	if err != nil {
		return nil, err
	}
	s := &scan{js: js, nc: nc, stream: stream, name: c.CachedInfo().Name, came: make(chan *nats.Msg, scanBatch+1)} // and the server's last word
	if s.sub, err = nc.ChanSubscribe(nc.NewInbox(), s.came); err != nil {
		return nil, err
	}
	return s, nil
}

// next returns the next message. The error is ErrNone at the end.
func (s *scan) next(ctx context.Context) (*Message, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	if s.asked == 0 {
		request, err := json.Marshal(struct {
			Batch  int  `json:"batch"`
			NoWait bool `json:"no_wait"`
		}{scanBatch, true})
		if err != nil {
			return nil, err
		}
		if err := s.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+s.stream+"."+s.name, s.sub.Subject, request); err != nil {
			return nil, err
		}
		s.asked = scanBatch
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
	return &Message{Subject: m.Subject, Sequence: facts.Sequence.Stream, Time: facts.Timestamp, Header: m.Header, Data: m.Data}, nil
}

func (s *scan) close() {
	_ = s.sub.Unsubscribe()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.js.DeleteConsumer(ctx, s.stream, s.name) // the server would remove it anyway
}
