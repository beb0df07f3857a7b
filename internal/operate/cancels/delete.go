package cancels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// window is how many requests are under way at once: answers have bodies.
const window = 16

// collectWithin is how long answers are waited for after the last was asked for.
const collectWithin = 5 * time.Second

// deleteAll deletes messages that are still there, several at once, and says which of them it deleted, also with an
// error. What was asked for is collected even when ctx is done. All of it happens on the goroutine of the caller, so
// that its owner can be charged.
func (t *taking) deleteAll(ctx context.Context, list []int) (deleted []bool, err error) {
	deleted = make([]bool, len(list))
	there, first := make([]bool, len(list)), error(nil)
	all := make([]int, len(list))
	for n := range list {
		all[n] = n
	}
	fail := func(err error) { first = cmp.Or(first, err) }
	fail(t.pipeline(ctx, all, func(n int) (string, []byte, error) {
		e := &t.events[list[n]]
		text, err := json.Marshal(stored.Request{Seq: e.Message.Sequence})
		return stored.Subject(e.Stream), text, err
	}, func(n int, answer []byte) {
		m, err := stored.Parse(answer)
		if errors.Is(err, stored.ErrNone) {
			return
		}
		if err != nil {
			fail(err)
			return
		}
		e := t.events[list[n]].Message
		there[n] = m.Time.Equal(e.Time) && m.Subject == e.Subject
	}))
	if first != nil || ctx.Err() != nil {
		return deleted, cmp.Or(first, ctx.Err())
	}
	all = slices.DeleteFunc(all, func(n int) bool { return !there[n] })
	fail(t.pipeline(ctx, all, func(n int) (string, []byte, error) { return deletion(&t.events[list[n]]) },
		func(n int, data []byte) {
			var a struct {
				Success bool   `json:"success"` // also of a purge that found nothing
				Purged  uint64 `json:"purged"`
			}
			if err := json.Unmarshal(data, &a); err != nil {
				fail(err)
				return
			}
			e := &t.events[list[n]]
			if deleted[n] = a.Success && (e.Stream != events.StreamSchedules || a.Purged > 0); !deleted[n] {
				fail(t.mustBeGone(ctx, e))
			}
		}))
	return deleted, first
}

// deletion is the request to delete a message.
func deletion(e *Event) (subject string, body []byte, err error) {
	if e.Stream == events.StreamSchedules { // each event has a subject of its own there, and its schedule goes with it
		body, err = json.Marshal(map[string]any{"filter": e.Message.Subject, "seq": e.Message.Sequence + 1})
		return "$JS.API.STREAM.PURGE." + e.Stream, body, err
	}
	return "$JS.API.STREAM.MSG.DELETE." + e.Stream, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, e.Message.Sequence), nil
}

// pipeline asks JetStream about several messages, and hands the answers on. When ctx is done it asks nothing more.
func (t *taking) pipeline(ctx context.Context, list []int, ask func(n int) (subject string, body []byte, err error),
	got func(n int, answer []byte)) error {
	if len(list) == 0 {
		return nil
	}
	answers, err := t.NC.SubscribeSync(t.NC.NewInbox() + ".*")
	if err != nil {
		return err
	}
	defer func() { _ = answers.Unsubscribe() }()
	inbox := strings.TrimSuffix(answers.Subject, "*")
	stopped := error(nil)
	for asked, open := 0, 0; ; {
		for ; stopped == nil && asked < len(list) && open < window; asked, open = asked+1, open+1 {
			if stopped = ctx.Err(); stopped != nil {
				break
			}
			var m nats.Msg
			if m.Subject, m.Data, stopped = ask(list[asked]); stopped == nil {
				m.Reply = inbox + strconv.Itoa(list[asked])
				stopped = t.NC.PublishMsg(&m)
			}
			if stopped != nil {
				break
			}
		}
		if open == 0 {
			return stopped
		}
		m, err := answers.NextMsg(collectWithin)
		if err != nil {
			return cmp.Or(stopped, err)
		}
		open--
		if n, err := strconv.Atoi(strings.TrimPrefix(m.Subject, inbox)); err == nil && n >= 0 && n < len(t.events) {
			got(n, m.Data)
		}
	}
}

// isThere reports whether a stream has that message.
func (t *taking) isThere(ctx context.Context, e *Event) (bool, error) {
	m, err := stored.Get(ctx, t.NC, e.Stream, stored.Request{Seq: e.Message.Sequence})
	if errors.Is(err, stored.ErrNone) {
		return false, nil
	}
	return err == nil && m.Time.Equal(e.Message.Time) && m.Subject == e.Message.Subject, err
}

// mustBeGone returns an error if a message is there that could not be deleted.
func (t *taking) mustBeGone(ctx context.Context, e *Event) error {
	if there, err := t.isThere(ctx, e); !there || err != nil {
		return err
	}
	return fmt.Errorf("message %d of %s could not be deleted", e.Message.Sequence, e.Stream)
}
