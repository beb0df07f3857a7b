package consumer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// asker sends messages that are answered, without a goroutine waiting for each answer.
type asker struct {
	nc     *nats.Conn
	prefix string // answers come to prefix + token
	sub    *nats.Subscription

	mu      sync.Mutex
	next    uint64
	pending map[uint64]question
	closed  bool
}

type question struct {
	until time.Time
	done  func(answer *nats.Msg, err error)
}

var (
	errNoAnswer = errors.New("no answer in time")
	errClosed   = errors.New("consumer is closed")
)

// open subscribes. Answers and timeouts are told one after the other by nats.go's goroutine of
// this subscription, respectively by whoever calls expire.
func (a *asker) open() error {
	a.prefix = a.nc.NewInbox() + "."
	a.pending = make(map[uint64]question)
	sub, err := a.nc.Subscribe(a.prefix+"*", a.answer)
	if err != nil {
		return fmt.Errorf("consumer: subscribe to answers: %w", err)
	}
	a.sub = sub
	return sub.SetPendingLimits(-1, -1)
}

// ask publishes m with a reply subject of its own. done is called exactly once: with the answer,
// with an error, or with errNoAnswer after wait; never before ask returned, unless publishing failed.
func (a *asker) ask(m *nats.Msg, wait time.Duration, now time.Time, done func(*nats.Msg, error)) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		done(nil, errClosed)
		return
	}
	a.next++
	token := a.next
	a.pending[token] = question{now.Add(wait), done}
	a.mu.Unlock()
	m.Reply = a.prefix + strconv.FormatUint(token, 36)
	if err := a.nc.PublishMsg(m); err != nil {
		if q, ok := a.take(token); ok {
			q.done(nil, err)
		}
	}
}

func (a *asker) take(token uint64) (question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q, ok := a.pending[token]
	delete(a.pending, token)
	return q, ok
}

func (a *asker) answer(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.prefix), 36, 64)
	if err != nil {
		return
	}
	q, ok := a.take(token)
	if !ok {
		return
	}
	if nobodyListens(m) {
		q.done(nil, nats.ErrNoResponders)
		return
	}
	q.done(m, nil)
}

// nobodyListens reports whether m is the server's word that nobody subscribes to what was published with m's subject for answers.
func nobodyListens(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// expire ends the questions whose time is over.
func (a *asker) expire(now time.Time) {
	a.mu.Lock()
	var late []question
	for token, q := range a.pending {
		if now.After(q.until) {
			late = append(late, q)
			delete(a.pending, token)
		}
	}
	a.mu.Unlock()
	for _, q := range late {
		q.done(nil, errNoAnswer)
	}
}

// close ends every question with errClosed.
func (a *asker) close() {
	if a.sub != nil {
		_ = a.sub.Unsubscribe() // fails when the connection is closed: as good
	}
	a.mu.Lock()
	a.closed = true
	left := a.pending
	a.pending = nil
	a.mu.Unlock()
	for _, q := range left {
		q.done(nil, errClosed)
	}
}

// apiError is an error that JetStream answered.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("JetStream: %s (%d)", e.Description, e.ErrCode)
}

// pubAck reads the answer to a publish: nil when the stream has the message.
func pubAck(m *nats.Msg, err error) error {
	if err != nil {
		return err
	}
	var ack struct {
		Stream string    `json:"stream"`
		Error  *apiError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return fmt.Errorf("answer to a publish: %w", err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	if ack.Stream == "" {
		return fmt.Errorf("answer to a publish names no stream: %.100q", m.Data)
	}
	return nil
}

// storedAt is pubAck with the sequence in the stream. What nats-server usually says to a publish is read without a JSON decoder.
func storedAt(m *nats.Msg, err error) (uint64, error) {
	if err == nil {
		stored, plain := bytes.CutPrefix(m.Data, storedStart)
		name, number, ok := bytes.Cut(stored, storedSeq)
		if number, end := bytes.CutSuffix(number, storedEnd); plain && ok && end && len(name) > 0 {
			if seq, err := strconv.ParseUint(string(number), 10, 64); err == nil {
				return seq, nil
			}
		}
	}
	if err := pubAck(m, err); err != nil {
		return 0, err
	}
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	return ack.Seq, json.Unmarshal(m.Data, &ack)
}

// pubSeq is the sequence in a PubAck, 0 when there is none.
func pubSeq(m *nats.Msg) uint64 {
	seq, _ := storedAt(m, nil)
	return seq
}

var storedStart, storedSeq, storedEnd = []byte(`{"stream":"`), []byte(`","seq":`), []byte(`}`)

// isDuplicate reports whether a PubAck says that nothing was stored because the message's id was known.
func isDuplicate(m *nats.Msg) bool {
	var ack struct {
		Duplicate bool `json:"duplicate"`
	}
	return json.Unmarshal(m.Data, &ack) == nil && ack.Duplicate
}

func isWrongLastSequence(err error) bool {
	var api *apiError
	return errors.As(err, &api) && api.ErrCode == codeWrongLastSequence
}
