package dispatch

import (
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// maxAskedDelay is the longest delay a handler may ask for with event.retry({delaySeconds}).
const maxAskedDelay = 24 * time.Hour

// noDeadline is ending.left of an event that has none.
const noDeadline = time.Duration(math.MaxInt64)

// verdict is the decision about an event. It cannot hold a lifecycle.Order: whether an event is parked, watched or
// given back depends on the state of the dispatcher, and not on how its attempt ended.
type verdict struct {
	outcome lifecycle.Outcome // without Version
	reply   bool              // the requester, if there is one, gets outcome.Failure as its reply
	notRun  bool              // no outcome: no attempt was made
}

// request is what verdicts depend on in an event.
type request struct {
	kind   events.Kind
	waits  bool // a requester waits for the reply
	direct bool // no stream has the event
}

func requestOf(e *lifecycle.Delivery) request { return request{e.Kind, e.Waits(), e.Direct()} }

// ending has everything that the verdict on an attempt depends on.
type ending struct {
	request
	end     *lifecycle.End
	retries workers.Retries // no zero fields
	attempt int
	replied bool          // a reply went out
	lost    bool          // its thread is lost with it, and that counts
	company bool          // it ran in a batch with others, and ended as the batch did
	left    time.Duration // until the event's deadline, noDeadline if it has none
	rand    func() float64
}

// judge decides about an attempt that a thread was given, by the table of docs/development/guarantees.md.
func judge(c ending) verdict {
	end := c.end
	switch {
	case c.replied && (!end.Died || !end.Interrupted || c.direct || end.Cancelled()): // a cancelled one does not run again
		return verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}}
	case end.Cancelled():
		return refusal(c.request, end.Failure)
	case end.NotRun():
		return verdict{notRun: true}
	case end.Interrupted && c.direct:
		return refusal(c.request, events.Fail(events.ReasonUnavailable, "its run was interrupted"))
	case end.Interrupted:
		return verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Retry}}
	case c.lost && !c.company:
		return refusal(c.request, costAThread(end))
	case end.Failure == nil && !end.Retry && !c.lost:
		return verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}}
	}
	return judgeFailure(c)
}

// judgeFailure decides about a handler that failed, or asked to run again.
func judgeFailure(c ending) verdict {
	f := c.end.Failure
	switch {
	case c.lost: // another event of the batch may be the reason
		f = costAThread(c.end)
	case f == nil:
		f = askedAgain(c.attempt)
	}
	again := !c.direct && (c.kind != events.Fetch || c.retries.Fetch)
	if again && f.Reason.Transient() && !c.end.NoRetry && c.attempt < c.retries.MaxAttempts {
		delay := min(c.end.RetryDelay, maxAskedDelay)
		if !c.end.Retry || delay < 0 {
			delay = retryDelay(c.retries, c.attempt, c.rand)
		}
		// If the next attempt could only begin after the deadline, the failure is final now.
		if delay < c.left {
			return verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Retry, Failure: f, Delay: delay}}
		}
	}
	if again && f.Reason.Transient() {
		return verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Failure: f}, reply: true}
	}
	return refusal(c.request, f)
}

// costAThread is the failure of an event that is not run again because it cost a thread. Enough of these would end the
// process.
func costAThread(end *lifecycle.End) *events.Failure {
	why := "V8 could not go on"
	if end.Failure != nil {
		why = end.Failure.Error()
	}
	return events.Fail(events.ReasonCrash, "it cost the process a thread (%s), so it is not run again", why)
}

func askedAgain(attempt int) *events.Failure {
	if attempt == 1 {
		return events.Fail(events.ReasonException, "event.retry() was asked for")
	}
	return events.Fail(events.ReasonException, "event.retry() was asked for %d times", attempt)
}

// refusal is the verdict on an event that is not run, or not again, because of f. A fetch event's failure is the reply
// to its requester. If there is none, the event becomes a dead letter like any other. So does every event that kills
// processes. A direct event never becomes a dead letter, nor does one that somebody cancelled.
func refusal(r request, f *events.Failure) verdict {
	v := verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Failure: f}, reply: true}
	if r.direct || f.Reason == events.ReasonCancelled ||
		r.kind == events.Fetch && r.waits && f.Reason != events.ReasonCrash {
		v.outcome.Verdict = lifecycle.Ack
	}
	return v
}

func expired(e *lifecycle.Delivery, now time.Time) bool {
	return !e.Deadline.IsZero() && !now.Before(e.Deadline)
}

// retryDelay returns how long to wait after the given attempt failed, by a policy from OrDefault. It is
// at most r.Max and at least a millisecond. rand gives the jitter: at 0.5 there is none.
func retryDelay(r workers.Retries, attempt int, rand func() float64) time.Duration {
	b := backoff.ExponentialBackOff{
		InitialInterval: r.Initial.Duration(),
		Multiplier:      r.Factor,
		// Room for jitter above the exact delay, so that many at their maximum still spread.
		MaxInterval: time.Duration(float64(r.Max.Duration()) / (1 + *r.Jitter)),
		Stop:        backoff.Stop,
		Clock:       backoff.SystemClock,
		// The library's own jitter (RandomizationFactor) cannot be seeded.
	}
	b.Reset()
	delay := b.NextBackOff()
	for n := 1; n < attempt && delay < b.MaxInterval; n++ {
		delay = b.NextBackOff()
	}
	delay = min(delay, b.MaxInterval) // the library does not bound the first
	delay = time.Duration(float64(delay) * (1 + *r.Jitter*(2*rand()-1)))
	return max(min(delay, r.Max.Duration()), time.Millisecond)
}
