package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// Tail asks each process to publish log lines and ended events of an owner on PREFIX.feed.OWNER.ID. A requester
// subscribes there first, and repeats the request every 5 s. It needs no token: it answers nothing of an owner, and who
// may read the feed is decided by NATS, as for PREFIX.logs.
type Tail struct {
	Owner string `json:"owner"`
	tail.Request
}

// Parse checks the request. It moves the owner of OWNER/WORKER to Owner. Its error is an *Error with the wrong field.
func (r *Tail) Parse() error {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return err
	}
	if err := (OwnerName{r.Owner}).check(); err != nil {
		return err
	}
	return tailError(r.Check())
}

// tailError returns err with the code of its answer.
func tailError(err error) error {
	var field *tail.FieldError
	switch {
	case errors.As(err, &field):
		return wrongField(field.Field, " %s", field.Text)
	case errors.Is(err, tail.ErrTooMany):
		return &Error{Code: http.StatusServiceUnavailable, Text: err.Error()}
	case errors.Is(err, tail.ErrOther):
		return &Error{Code: http.StatusConflict, Text: err.Error()}
	}
	return err
}

// Tailing is the answer of a process that serves a tail.
type Tailing struct {
	Feed    string `json:"feed"` // subject
	Node    string `json:"node"`
	RenewMs int64  `json:"renewMs"` // repeat the request after this time
}

// tail begins, renews or ends a tail in this process.
func (s *Server) tail(_ context.Context, r Tail) (Tailing, error) {
	if err := r.Parse(); err != nil {
		return Tailing{}, err
	}
	if err := s.cfg.Process.Tail(r.Owner, r.Request); err != nil {
		return Tailing{}, tailError(err)
	}
	return Tailing{tail.Feed(s.subjects, r.Owner, r.ID), s.node, tail.Renewal.Milliseconds()}, nil
}

// errNoAnswer is the error of a tail that no process serves.
var errNoAnswer = errors.New("no process of the fleet answers: is one running, and may this user ask it?")

// tailAnswer is how long a tail waits for the first answer of a process.
const tailAnswer = 5 * time.Second

// follower is one tail on the side of its requester.
type follower struct {
	client  *Client
	request Tail
	entries *nats.Subscription // the feed
	answers *nats.Subscription // of the processes
	show    func(*tail.Entry) error
	warn    func(error)
	heard   bool            // a process has answered
	begun   func()          // called once then
	warned  map[string]bool // errors that were passed to warn
}

// Follow asks for the log lines and ended events that r chooses, and calls show with each until ctx is done, which is
// no error, or until show fails. The ID of r is chosen by Follow. warn gets errors of single processes, each once. It
// returns an error if no process serves the tail.
func (c *Client) Follow(ctx context.Context, r Tail, show func(*tail.Entry) error, warn func(error)) error {
	return FollowFrom(ctx, c, r, func() {}, show, warn)
}

// FollowFrom does what Follow does, and calls begun when a process has said that it follows: what is sent to a worker
// from then on leaves no line that is missed.
func FollowFrom(ctx context.Context, c *Client, r Tail, begun func(), show func(*tail.Entry) error,
	warn func(error)) (err error) {
	r.ID = rand.Text()
	if err := r.Parse(); err != nil {
		return err
	}
	f := &follower{client: c, request: r, show: show, warn: warn, begun: begun,
		warned: map[string]bool{}}
	if f.entries, err = c.nc.SubscribeSync(tail.Feed(events.Subjects(c.prefix), r.Owner, r.ID)); err != nil {
		return err
	}
	defer func() { _ = f.entries.Unsubscribe() }()
	if f.answers, err = c.nc.SubscribeSync(c.nc.NewInbox()); err != nil {
		return err
	}
	defer func() { _ = f.answers.Unsubscribe() }()
	defer func() { // the processes need not wait until the tail expires
		f.request.End = true
		_ = f.ask()
		_ = c.nc.FlushTimeout(time.Second)
	}()
	return f.run(ctx)
}

// ask sends the request to all processes.
func (f *follower) ask() error {
	data, err := json.Marshal(f.request)
	if err != nil {
		return err
	}
	m := f.client.message("tail", data)
	m.Reply = f.answers.Subject
	return f.client.nc.PublishMsg(m)
}

func (f *follower) run(ctx context.Context) error {
	began, asked := time.Now(), time.Time{}
	for ctx.Err() == nil {
		if time.Since(asked) >= tail.Renewal {
			if err := f.ask(); err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) {
				return err
			}
			asked = time.Now()
		}
		if err := f.readAnswers(); err != nil {
			return err
		}
		if !f.heard && time.Since(began) > tailAnswer {
			return errNoAnswer
		}
		m, err := f.entries.NextMsg(100 * time.Millisecond)
		switch {
		case errors.Is(err, nats.ErrTimeout):
			continue
		case errors.Is(err, nats.ErrSlowConsumer):
			f.tell(errors.New("lines came faster than they could be shown: some are lost"))
			continue
		case err != nil:
			return err
		}
		var e tail.Entry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			f.tell(fmt.Errorf("a line of the tail cannot be read: %w", err))
			continue
		}
		if err := f.show(&e); err != nil {
			return err
		}
	}
	return nil
}

// readAnswers reads the answers that have arrived. The first one decides whether the request was right.
func (f *follower) readAnswers() error {
	for n, _, _ := f.answers.Pending(); n > 0; n-- {
		m, err := f.answers.NextMsg(time.Millisecond)
		if err != nil {
			return nil //nolint:nilerr // the next round reads it
		}
		code := m.Header.Get(micro.ErrorCodeHeader)
		switch {
		case m.Header.Get("Status") == "503" && len(m.Data) == 0: // no responders
			if !f.heard {
				return errNoAnswer
			}
			f.tell(errNoAnswer)
		case code == "":
			if !f.heard {
				f.begun()
			}
			f.heard = true
		case code == "503":
			f.tell(refusedBy(m))
		default:
			return refusedBy(m)
		}
	}
	return nil
}

// tell passes an error to warn, once.
func (f *follower) tell(err error) {
	if text := err.Error(); !f.warned[text] && len(f.warned) < 100 {
		f.warned[text] = true
		f.warn(err)
	}
}
