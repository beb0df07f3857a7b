package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// Bounds of the test events of a console. It remembers what it has seen of the last ones, so that their pages tell it.
const (
	maxUnderWay = 8 // at once
	maxSent     = 32
	// followSent is how long a test event is followed at most.
	followSent = 2 * time.Minute
	// lateEnd is how long after its reply the end of a run may come: waitUntil goes on after the reply.
	lateEnd = 30 * time.Second
	// maxSentLines is how many lines of a test event are kept, and maxSentBytes how many bytes of them.
	maxSentLines, maxSentBytes = 200, 256 << 10
	// refusedWithin is how long a form waits for its refusal, before the page of the event comes.
	refusedWithin = 2 * time.Second
)

// outbox has the test events that were sent from this console, the oldest first.
type outbox struct {
	life    context.Context //nolint:containedctx // of the goroutines
	running sync.WaitGroup

	mu   sync.Mutex
	sent []*sentEvent
}

// sentEvent is a test event, and what has been seen of it.
type sentEvent struct {
	Owner, Worker, Kind, ID string
	At                      time.Time

	mu      sync.Mutex
	seen    seenOfEvent
	bytes   int
	changed chan struct{} // closed with the next change
}

// seenOfEvent is what has been seen of a test event.
type seenOfEvent struct {
	Number  int           // of changes
	Entries []*tail.Entry // its lines and the ends of its runs
	More    bool          // there were more lines than are kept
	Answer  control.SentEvent
	Known   bool   // Answer is known
	Err     error  // the fleet did not take it, or did not say whether
	Warning string // why lines may be missing
	Over    bool   // nothing more is seen of it
}

// send sends an event in the name of a session, and follows it. The error says that too many are under way.
func (o *outbox) send(fleet *control.Client, q control.SendEvent) (*sentEvent, error) {
	q.ID = "test-" + strings.ToLower(rand.Text())
	e := &sentEvent{Kind: q.Kind, ID: q.ID, At: time.Now(), changed: make(chan struct{})}
	e.Owner, e.Worker, _ = strings.Cut(q.Worker, "/")
	o.mu.Lock()
	defer o.mu.Unlock()
	underWay := 0
	for _, one := range o.sent {
		if !one.now().Over {
			underWay++
		}
	}
	if underWay >= maxUnderWay || o.life.Err() != nil {
		return nil, &control.Error{Code: http.StatusServiceUnavailable,
			Text: fmt.Sprintf("%d test events are under way from this console, and no more at once", maxUnderWay)}
	}
	if over := slices.IndexFunc(o.sent, func(one *sentEvent) bool { return one.now().Over }); len(o.sent) >= maxSent {
		o.sent = slices.Delete(o.sent, over, over+1) // there is one: fewer are under way
	}
	o.sent = append(o.sent, e)
	o.running.Go(func() { e.run(o.life, fleet, q) })
	return e, nil
}

// find returns the event of an ID; nil = this console has not sent it, or has forgotten it.
func (o *outbox) find(id string) *sentEvent {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.sent, func(e *sentEvent) bool { return e.ID == id }); i >= 0 {
		return o.sent[i]
	}
	return nil
}

// run sends the event once its lines are followed, and goes on until its run has ended.
func (e *sentEvent) run(life context.Context, fleet *control.Client, q control.SendEvent) {
	ctx, end := context.WithTimeout(life, followSent)
	defer end()
	defer e.change(func(s *seenOfEvent) { s.Over = true })
	var following sync.WaitGroup
	defer following.Wait()
	defer end()
	begun, failed, ended := make(chan struct{}), make(chan struct{}), make(chan int, maxSentLines)
	warn := func(err error) { e.change(func(s *seenOfEvent) { s.Warning = failureOf(err).Text }) }
	following.Go(func() {
		r := control.Tail{Owner: e.Owner}
		r.Worker, r.EventID = e.Worker, e.ID
		err := control.FollowFrom(ctx, fleet, r, func() { close(begun) }, func(one *tail.Entry) error {
			e.add(one)
			if one.Type == tail.TypeEvent && one.Outcome != tail.OutcomeInterrupted {
				select {
				case ended <- one.Attempt:
				default:
				}
			}
			return nil
		}, warn)
		if err != nil {
			warn(err)
			close(failed)
		}
	})
	select {
	case <-begun:
	case <-failed: // its reply comes without lines
	case <-ctx.Done():
	}
	answer, err := control.Ask(ctx, fleet, control.EventSend, q)
	e.change(func(s *seenOfEvent) { s.Answer, s.Known, s.Err = answer, err == nil, err })
	if err == nil {
		waitForEnd(ctx, answer.Reply, ended, failed)
	}
}

// waitForEnd returns when the run that has replied has ended, or when that can no longer be seen. ended has the numbers
// of attempts that have.
func waitForEnd(ctx context.Context, reply *control.SentReply, ended <-chan int, failed <-chan struct{}) {
	var late <-chan time.Time
	if reply != nil {
		late = time.After(lateEnd)
	}
	for {
		select {
		case attempt := <-ended:
			if reply != nil && attempt >= reply.Attempt {
				return
			}
		case <-late:
			return
		case <-failed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// now is what has been seen of the event.
func (e *sentEvent) now() seenOfEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// after returns what has been seen once that is more than n changes. Once the event is over it returns at once.
func (e *sentEvent) after(ctx context.Context, n int) (seenOfEvent, error) {
	for {
		e.mu.Lock()
		seen, changed := e.seen, e.changed
		e.mu.Unlock()
		if seen.Number > n || seen.Over {
			return seen, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
}

func (e *sentEvent) change(do func(*seenOfEvent)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do(&e.seen)
	e.seen.Number++
	close(e.changed)
	e.changed = make(chan struct{})
}

// add keeps a line, or the end of a run. Of lines it keeps the first ones.
func (e *sentEvent) add(one *tail.Entry) {
	if one.EventID != e.ID {
		return
	}
	e.change(func(s *seenOfEvent) {
		size := len(one.Text) + len(one.Stack) + len(one.Message)
		if full := len(s.Entries) >= maxSentLines || e.bytes+size > maxSentBytes; full && one.Type == tail.TypeLog ||
			len(s.Entries) >= 2*maxSentLines {
			s.More = true
			return
		}
		e.bytes += size
		s.Entries = append(s.Entries[:len(s.Entries):len(s.Entries)], one)
	})
}

// refusal returns why the fleet has refused the event, if it says so soon.
func (e *sentEvent) refusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refusedWithin)
	defer cancel()
	for n := 0; ; {
		seen, err := e.after(ctx, n)
		switch {
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		case err != nil, seen.Known, seen.Over && seen.Err == nil:
			return nil
		case seen.Err != nil:
			return seen.Err
		}
		n = seen.Number
	}
}
