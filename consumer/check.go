package consumer

import (
	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// checks are the lookups before an event may run, if the event was delivered before, is a replay, is of an idempotent
// worker, or replaces others. The event is in the state checking.
type checks struct {
	*settler
	h      *entry
	record *attempts.Record // the record in the bucket
	cause  crashnote.Cause  // why the process ended in which it ran
}

// check is one of the checks. Their numbers are their order.
type check uint8

const (
	checkClaim     check = iota // a replay: is it the only one of its number that runs?
	checkResult                 // of an idempotent worker: has the event succeeded before?
	checkLetter                 // delivered before: does it have a dead letter?
	checkRecord                 // delivered before: how many runs has it had?
	checkEnded                  // it ran when its record was stored: why did that process end?
	checkDuplicate              // delivered before, and its record does not explain why: was it parked?
	checkMoving                 // delivered before: is it being delayed?
	checkReplacing              // of a schedule that replaces: have the events of the ticks before ended?
)

// String is the name of the check in logs.
func (c check) String() string {
	return [...]string{"claim of the replay", "stored result", "dead letter", "record of attempts", "end of its process",
		"parked duplicate", "delay", "ticks before"}[c]
}

// from makes the checks, beginning with at. The first check that finds that the event has ended elsewhere, or must not
// run here, ends it. Otherwise the event runs.
func (k *checks) from(at check) {
	h, e := k.h, &k.h.event
	again := e.Origin.Deliveries > 1
	replay, isReplay := deadletter.ReplayOf(&e.Event)
	switch {
	case at <= checkClaim && isReplay:
		k.claims.Take(replay, func(c deadletter.Claim, err error) {
			if c == deadletter.Claimed {
				k.step(StepClaimed)
			}
			k.found(checkClaim, err, c == deadletter.ClaimedOther || c == deadletter.ClaimEnded, func() { k.endClaimed(h, c) })
		})
	case at <= checkResult && h.idempotent:
		k.results.Find(&e.Event, e.Attempt, func(r *events.Reply, err error) {
			k.found(checkResult, err, r != nil, func() { k.endRecalled(h, r) })
		})
	case at <= checkLetter && again:
		k.letters.Find(&e.Event, func(d *events.DeadLetter, err error) {
			k.found(checkLetter, err, d != nil, func() { k.endFound(h, d) })
		})
	case at <= checkRecord && again:
		k.attempts.Find(&e.Event, func(r *attempts.Record, err error) {
			k.record = r
			k.found(checkRecord, err, false, nil)
		})
	case at <= checkEnded && k.record.Ran() && k.record.Instance != "":
		k.attempts.FindEnded(k.record.Instance, func(cause crashnote.Cause, err error) {
			k.cause = cause
			k.found(checkEnded, err, false, nil)
		})
	case at <= checkDuplicate && again && k.record.Unexplained(e.Origin.Deliveries): // a parked one may have been moved
		k.parker.Duplicate(&e.Event, func(parked bool, err error) {
			k.found(checkDuplicate, err, parked, func() { k.endParked(h, lifecycle.Park) })
		})
	case at <= checkMoving && again:
		isMoving := k.record != nil && k.record.Moving != nil
		if !isMoving {
			k.setAttempt()
		}
		k.found(checkMoving, nil, isMoving, func() { k.delayAgain(h, k.record) })
	case at <= checkReplacing && e.Overlaps() == events.OverlapReplace && !k.draining.Load():
		k.replacer.TakeOver(&e.Event, func() bool { return h.is(checking) }, func(newer bool, err error) {
			k.found(checkReplacing, err, newer, func() { k.endReplaced(h) })
		})
	default:
		k.enter()
	}
}

// found continues after a check: it calls end when the check ends the event, tries the same check again after a while
// when it failed, and otherwise makes the next check.
func (k *checks) found(at check, err error, ends bool, end func()) {
	h := k.h
	switch {
	case !h.is(checking): // its stream was deleted
	case h.cancelled && !ends:
		k.endCancelled(h)
	case err != nil:
		k.api.Repeats.Warn(err, "pre-run check failed; retrying").Str("event", h.event.ID).Stringer("check", at).
			Send()
		k.api.Missing()
		if h.tries == nil {
			h.tries = jsapi.NewRetrier(0)
		}
		k.api.Retry(h.tries, func() { k.from(at) })
	case ends:
		h.tries = nil
		end()
	default:
		h.tries = nil
		k.from(at + 1)
	}
}

// setAttempt sets the event's attempt and crashes from its record.
func (k *checks) setAttempt() {
	h, r := k.h, k.record
	if r == nil {
		r = h.recorded() // the record that the event carries
	}
	h.record = r
	r.Delivered(h.event.Origin.Deliveries, k.cause)
	// A parked event carries the counts that it had before.
	h.event.Attempt += r.Next() - 1
	h.event.Crashes += r.Crashes
	h.event.Spared = r.Spared + r.Outside
	h.event.Asked = r.Asked()
	h.event.CrashedAlone = h.event.CrashedAlone || r.CrashedAlone
}

// enter submits the event after all checks.
func (k *checks) enter() {
	h := k.h
	if h.cancelled {
		k.endCancelled(h)
		return
	}
	if k.draining.Load() {
		k.giveBack(h)
		return
	}
	if h.event.Overlaps() == events.OverlapReplace {
		h.event.Halt = &events.Signal{} // it runs until it is halted
	}
	if k.inflight.move(h, running, checking) {
		h.unspent = ""
		k.dispatcher.Submit([]*lifecycle.Delivery{&h.event})
	}
}
