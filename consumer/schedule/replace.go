package schedule

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// ReplaceNotice notifies every process that there is an event of a newer tick, of a schedule with overlap replace.
type ReplaceNotice struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	Key    string `json:"key"`
	Tick   int64  `json:"tick"` // milliseconds since the epoch: the events of all ticks before it are to end
}

// Replaces reports whether the notice ends e, which came from the stream of schedules.
func (n ReplaceNotice) Replaces(e *events.Event) bool {
	return e.Key == n.Key && e.Owner == n.Owner && e.Worker == n.Worker && e.ScheduledTime < n.Tick
}

// replaceAgain is how often a process checks, for the event of a newer tick, whether the events of earlier ticks have
// ended.
const replaceAgain = 100 * time.Millisecond

// Replacer lets the event of a tick replace the events of earlier ticks. Its methods are for the loop of its Client.
type Replacer struct {
	api    *jsapi.Client
	prefix events.Subjects
	sub    *nats.Subscription
}

// NewReplacer makes a Replacer. It receives no notices before Open.
func NewReplacer(api *jsapi.Client, prefix events.Subjects) *Replacer {
	return &Replacer{api: api, prefix: prefix}
}

func (r *Replacer) subject() string { return string(r.prefix) + ".control.supersede" }

// Open subscribes to notices, including those of this process, and calls ended with each on the loop.
func (r *Replacer) Open(ended func(ReplaceNotice)) (err error) {
	r.sub, err = r.api.NC.Subscribe(r.subject(), func(m *nats.Msg) {
		var n ReplaceNotice
		if json.Unmarshal(m.Data, &n) == nil && n.Key != "" {
			r.api.Do(func() { ended(n) })
		}
	})
	return err
}

// Close unsubscribes from notices.
func (r *Replacer) Close() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // not connected: nothing arrives
	}
}

// errNoEvent is the error when the event itself is not found: the stream was created again.
var errNoEvent = errors.New("the event is not in the stream any more")

// TakeOver checks whether e may run. e is the event of a tick of a schedule with overlap replace. If there is an event
// of a newer tick, which replaces e, TakeOver calls done with newer. Otherwise it notifies all processes to end the
// events of earlier ticks, and calls done when these have ended. It calls goOn before each check.
func (r *Replacer) TakeOver(e *events.Event, goOn func() bool, done func(newer bool, err error)) {
	if !goOn() {
		return
	}
	r.ends(r.prefix.Anywhere(e), func(first, last *stored.Message, err error) {
		switch {
		case errors.Is(err, errNoEvent):
			done(false, nil)
		case err != nil:
			done(false, err)
		case tickOf(first) > e.ScheduledTime, tickOf(last) > e.ScheduledTime:
			done(true, nil)
		case first.Sequence < e.Origin.Seq, last.Sequence > e.Origin.Seq: // an earlier event, stored after e for a retry
			body, _ := json.Marshal(ReplaceNotice{e.Owner, e.Worker, e.Key, e.ScheduledTime}) // strings and a number cannot fail
			_ = r.api.NC.Publish(r.subject(), body)                                           // not connected: published again
			r.api.DoIn(replaceAgain, func() { r.TakeOver(e, goOn, done) })
		default:
			done(false, nil)
		}
	})
}

// tickOf is the time of the tick of event m, in milliseconds since the epoch.
func tickOf(m *stored.Message) int64 {
	tick, err := strconv.ParseInt(m.Header.Get(events.HeaderScheduledTime), 10, 64)
	if err != nil {
		return 0
	}
	return tick
}

// ends looks up the first and the last message that match a filter. There is at least one.
func (r *Replacer) ends(filter string, done func(first, last *stored.Message, err error)) {
	r.api.LookUp(events.StreamSchedules, filter, func(last *stored.Message, err error) {
		if err == nil && last == nil {
			err = errNoEvent
		}
		if err != nil {
			done(nil, nil, err)
			return
		}
		r.api.Get(events.StreamSchedules, stored.Request{Seq: 1, Next: filter}, func(first *stored.Message, err error) {
			if err == nil && first == nil { // it has ended meanwhile
				first = last
			}
			done(first, last, err)
		})
	})
}
