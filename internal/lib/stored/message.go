package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Message is a message of a stream. Header, Block and Data come from the publisher; JetStream sets the rest.
type Message struct {
	Subject  string
	Sequence uint64
	Time     time.Time // when it was stored
	Header   nats.Header
	Block    []byte // the header block that Header is read from; nil from a scan or a direct get
	Data     []byte
}

// ErrNone is the error when there is no such message.
var ErrNone = errors.New("no such message")

// Request selects a message: the one with sequence Seq; or the first of subject Next from Seq on; or the last of
// subject Last. Next and Last may have wildcards.
type Request struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

// patience is how long an answer may take when the caller sets no limit.
const patience = 5 * time.Second

func within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, patience)
}

// Subject is the subject of requests about a stream, with a Request as JSON. Parse reads the answer.
func Subject(stream string) string { return "$JS.API.STREAM.MSG.GET." + stream }

// Get reads one message from the leader of a stream. The error is ErrNone when there is none.
func Get(ctx context.Context, nc *nats.Conn, stream string, r Request) (*Message, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	answer, err := nc.RequestWithContext(ctx, Subject(stream), body)
	if err != nil {
		return nil, err
	}
	return Parse(answer.Data)
}

// Parse parses the answer to a request. The error is ErrNone when there is no such message.
func Parse(answer []byte) (*Message, error) {
	var a struct {
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	err := json.Unmarshal(answer, &a)
	switch {
	case err != nil:
		return nil, fmt.Errorf("answer about a stored message: %w", err)
	case a.Error != nil && a.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, ErrNone
	case a.Error != nil:
		return nil, a.Error
	case a.Message == nil:
		return nil, errors.New("an answer of JetStream has no message")
	}
	m := &Message{Subject: a.Message.Subject, Sequence: a.Message.Seq, Time: a.Message.Time, Block: a.Message.Header,
		Data: a.Message.Data}
	if len(a.Message.Header) > 0 {
		// Header is nil when the block cannot be read, as it is when the message is delivered.
		m.Header, _ = nats.DecodeHeadersMsg(a.Message.Header)
	}
	if guard.StoredHeaders.Off() {
		m.believe()
	}
	return m, nil
}

// believe takes JetStream's facts from the publisher's headers, as readers of direct gets do.
func (m *Message) believe() {
	if text := m.Header.Get(jetstream.SequenceHeader); text != "" {
		_, _ = fmt.Sscan(text, &m.Sequence)
	}
	if at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer)); err == nil {
		m.Time = at
	}
	if subject := m.Header.Get(jetstream.SubjectHeader); subject != "" {
		m.Subject = subject
	}
}
