package dispatch

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func half() float64 { return 0.5 } // the exact delay

// Each row of "What becomes of an event" (docs/development/guarantees.md) that dispatch decides, for an attempt that a
// thread was given.
func TestJudge(t *testing.T) {
	failed := func(r events.Reason) *lifecycle.End {
		return &lifecycle.End{Started: true, Failure: events.Fail(r, "it failed"), RetryDelay: -1}
	}
	asked := func(delay time.Duration) *lifecycle.End {
		return &lifecycle.End{Started: true, Retry: true, RetryDelay: delay}
	}
	noRetry := failed(events.ReasonException)
	noRetry.NoRetry = true
	noRetryAsked := asked(0)
	noRetryAsked.NoRetry = true
	failedAsked := failed(events.ReasonTimeout)
	failedAsked.Retry, failedAsked.RetryDelay = true, 7*time.Second
	fetchRetries := workers.Retries{Fetch: true}

	for _, c := range []struct {
		what    string
		kinds   []events.Kind // nil = task and scheduled
		c       ending
		verdict lifecycle.Verdict
		reason  events.Reason
		message string
		delay   time.Duration
		reply   bool
		notRun  bool
		alone   bool // no requester waits for the reply
	}{
		{what: "handler returns", kinds: events.Kinds[:], c: ending{end: &lifecycle.End{Started: true}},
			verdict: lifecycle.Ack},
		{what: "reply out, then it ends", kinds: events.Kinds[:], c: ending{end: &lifecycle.End{Started: true},
			replied: true}, verdict: lifecycle.Ack},
		{what: "reply out, waitUntil fails", kinds: events.Kinds[:], c: ending{end: failed(events.ReasonException),
			replied: true}, verdict: lifecycle.Ack},
		{what: "reply out, then interrupted", kinds: events.Kinds[:],
			c: ending{end: &lifecycle.End{Started: true, Interrupted: true}, replied: true}, verdict: lifecycle.Ack},
		{what: "reply out, then its cell dies", kinds: events.Kinds[:],
			c:       ending{end: &lifecycle.End{Started: true, Interrupted: true, Died: true}, replied: true},
			verdict: lifecycle.Retry},
		{what: "reply out, then its cell dies, and no stream has it", kinds: events.Kinds[:],
			c: ending{request: request{direct: true}, end: &lifecycle.End{Started: true, Interrupted: true, Died: true},
				replied: true}, verdict: lifecycle.Ack},

		{what: "fetch throws", kinds: []events.Kind{events.Fetch}, c: ending{end: failed(events.ReasonException)},
			verdict: lifecycle.Ack, reason: events.ReasonException, reply: true},
		{what: "fetch over CPU", kinds: []events.Kind{events.Fetch}, c: ending{end: failed(events.ReasonCPU)},
			verdict: lifecycle.Ack, reason: events.ReasonCPU, reply: true},
		{what: "fetch over memory", kinds: []events.Kind{events.Fetch}, c: ending{end: failed(events.ReasonMemory)},
			verdict: lifecycle.Ack, reason: events.ReasonMemory, reply: true},
		{what: "fetch over wall clock", kinds: []events.Kind{events.Fetch}, c: ending{end: failed(events.ReasonTimeout)},
			verdict: lifecycle.Ack, reason: events.ReasonTimeout, reply: true},
		{what: "fetch has no handler", kinds: []events.Kind{events.Fetch}, c: ending{end: failed(events.ReasonNoHandler)},
			verdict: lifecycle.Ack, reason: events.ReasonNoHandler, reply: true},
		{what: "fetch without a requester throws", alone: true, kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonException)}, verdict: lifecycle.Dead, reason: events.ReasonException,
			reply: true},
		{what: "fetch without a requester has no handler", alone: true, kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonNoHandler)}, verdict: lifecycle.Dead, reason: events.ReasonNoHandler,
			reply: true},
		{what: "no requester, and it returns", alone: true, kinds: events.Kinds[:],
			c: ending{end: &lifecycle.End{Started: true}}, verdict: lifecycle.Ack},
		{what: "no requester, and a waitUntil fails after the response", alone: true, kinds: events.Kinds[:],
			c: ending{end: failed(events.ReasonException), replied: true}, verdict: lifecycle.Ack},
		{what: "fetch opted into retries throws", kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonException), retries: fetchRetries}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: time.Second},
		{what: "fetch opted into retries throws for the last time", kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonException), retries: fetchRetries, attempt: 5}, verdict: lifecycle.Dead,
			reason: events.ReasonException, reply: true},
		{what: "fetch opted into retries has no handler", kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonNoHandler), retries: fetchRetries}, verdict: lifecycle.Ack,
			reason: events.ReasonNoHandler, reply: true},
		{what: "fetch retry would be after its deadline", kinds: []events.Kind{events.Fetch},
			c: ending{end: failed(events.ReasonException), retries: fetchRetries, left: time.Second}, verdict: lifecycle.Dead,
			reason: events.ReasonException, reply: true},

		{what: "throws", c: ending{end: failed(events.ReasonException)}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: time.Second},
		{what: "throws again", c: ending{end: failed(events.ReasonException), attempt: 3}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: 4 * time.Second},
		{what: "throws for the last time", c: ending{end: failed(events.ReasonException), attempt: 5},
			verdict: lifecycle.Dead, reason: events.ReasonException, reply: true},
		{what: "throws after the policy became shorter", c: ending{end: failed(events.ReasonException), attempt: 9},
			verdict: lifecycle.Dead, reason: events.ReasonException, reply: true},
		{what: "over CPU", c: ending{end: failed(events.ReasonCPU)}, verdict: lifecycle.Retry, reason: events.ReasonCPU,
			delay: time.Second},
		{what: "over CPU for the last time", c: ending{end: failed(events.ReasonCPU), attempt: 5}, verdict: lifecycle.Dead,
			reason: events.ReasonCPU, reply: true},
		{what: "over memory for the last time", c: ending{end: failed(events.ReasonMemory), attempt: 5},
			verdict: lifecycle.Dead, reason: events.ReasonMemory, reply: true},
		{what: "over wall clock for the last time", c: ending{end: failed(events.ReasonTimeout), attempt: 5},
			verdict: lifecycle.Dead, reason: events.ReasonTimeout, reply: true},
		{what: "no handler", c: ending{end: failed(events.ReasonNoHandler)}, verdict: lifecycle.Dead,
			reason: events.ReasonNoHandler, reply: true},
		{what: "noRetry and throws", c: ending{end: noRetry}, verdict: lifecycle.Dead, reason: events.ReasonException,
			reply: true},
		{what: "retry after the deadline", c: ending{end: failed(events.ReasonCPU), left: time.Millisecond},
			verdict: lifecycle.Dead, reason: events.ReasonCPU, reply: true},

		{what: "asks for retry at once", c: ending{end: asked(0)}, verdict: lifecycle.Retry, reason: events.ReasonException},
		{what: "asks for retry in 3 s", c: ending{end: asked(3 * time.Second)}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: 3 * time.Second},
		{what: "asks for retry in a year", c: ending{end: asked(365 * 24 * time.Hour)}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: 24 * time.Hour},
		{what: "asks for retry by policy", c: ending{end: asked(-1), attempt: 2}, verdict: lifecycle.Retry,
			reason: events.ReasonException, delay: 2 * time.Second},
		{what: "asks for retry too often", c: ending{end: asked(0), attempt: 5}, verdict: lifecycle.Dead,
			reason: events.ReasonException, message: "event.retry() was asked for 5 times", reply: true},
		{what: "asks for retry and says noRetry", c: ending{end: noRetryAsked}, verdict: lifecycle.Dead,
			reason: events.ReasonException, message: "event.retry() was asked for", reply: true},
		{what: "times out and asked for retry in 7 s", c: ending{end: failedAsked}, verdict: lifecycle.Retry,
			reason: events.ReasonTimeout, delay: 7 * time.Second},

		{what: "interrupted while it ran", kinds: events.Kinds[:],
			c: ending{end: &lifecycle.End{Started: true, Interrupted: true}}, verdict: lifecycle.Retry},
		{what: "interrupted while it ran for the last time", kinds: events.Kinds[:],
			c: ending{end: &lifecycle.End{Started: true, Interrupted: true}, attempt: 5}, verdict: lifecycle.Retry},
		{what: "not begun", kinds: events.Kinds[:], c: ending{end: &lifecycle.End{Interrupted: true}}, notRun: true},
		{what: "answered, cancelled, and its process died", kinds: events.Kinds[:], verdict: lifecycle.Ack,
			c: ending{replied: true, end: &lifecycle.End{Died: true, Interrupted: true, Started: true,
				Failure: events.Fail(events.ReasonCancelled, "x")}}},
	} {
		kinds := c.kinds
		if kinds == nil {
			kinds = []events.Kind{events.Task, events.Scheduled}
		}
		for _, k := range kinds {
			t.Run(fmt.Sprintf("%s %s", k, c.what), func(t *testing.T) {
				in := c.c
				in.waits = !c.alone
				in.kind, in.rand, in.retries = k, half, in.retries.OrDefault()
				in.attempt = max(1, in.attempt)
				if in.left == 0 {
					in.left = noDeadline
				}
				got := judge(in)
				require.Equal(t, c.verdict, got.outcome.Verdict, "%+v", got)
				require.Equal(t, c.notRun, got.notRun)
				require.Equal(t, c.reply, got.reply)
				require.InDelta(t, c.delay, got.outcome.Delay, float64(time.Microsecond))
				if c.reason == "" {
					require.Nil(t, got.outcome.Failure)
					return
				}
				require.Equal(t, c.reason, got.outcome.Failure.Reason)
				if c.message != "" {
					require.Equal(t, c.message, got.outcome.Failure.Message)
				}
			})
		}
	}
}

// judge cannot park, watch or give back an event: what it returns has no place for an order.
func TestVerdictHoldsNoOrder(t *testing.T) {
	order := reflect.TypeFor[lifecycle.Order]()
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		require.NotEqual(t, order, of)
		for i := range of.NumField() {
			if f := of.Field(i).Type; f.Kind() == reflect.Struct {
				look(f)
			} else {
				require.NotEqual(t, order, f)
			}
		}
	}
	look(reflect.TypeFor[verdict]())
}

// For any input, a verdict is one of those allowed, and complete.
func TestJudgeIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ending{
			request: request{kind: rapid.SampledFrom(events.Kinds[:]).Draw(t, "kind"), waits: rapid.Bool().Draw(t, "waits"),
				direct: rapid.Bool().Draw(t, "direct")},
			end: &lifecycle.End{
				Interrupted: rapid.Bool().Draw(t, "interrupted"), Died: rapid.Bool().Draw(t, "died"),
				Started: rapid.Bool().Draw(t, "started"),
				NoRetry: rapid.Bool().Draw(t, "noRetry"), Retry: rapid.Bool().Draw(t, "retry"),
				RetryDelay: time.Duration(rapid.Int64().Draw(t, "delay")),
			},
			retries: workers.Retries{MaxAttempts: rapid.IntRange(0, 100).Draw(t, "max"), Fetch: rapid.Bool().
				Draw(t, "fetch")}.OrDefault(),
			attempt: rapid.IntRange(1, 200).Draw(t, "attempt"),
			replied: rapid.Bool().Draw(t, "replied"),
			left:    time.Duration(rapid.Int64().Draw(t, "left")), rand: half,
		}
		if rapid.Bool().Draw(t, "fails") {
			c.end.Failure = events.Fail(rapid.SampledFrom(events.Reasons[:]).Draw(t, "reason"), "x")
		}
		v := judge(c)
		o := v.outcome
		if v.notRun {
			require.False(t, c.end.Started, "an attempt that began counts")
			require.Equal(t, verdict{notRun: true}, v)
			return
		}
		require.Contains(t, []lifecycle.Verdict{lifecycle.Ack, lifecycle.Dead, lifecycle.Retry}, o.Verdict)
		require.True(t, !c.direct || o.Verdict == lifecycle.Ack, "a direct event has no stream")
		require.True(t, o.Verdict != lifecycle.Dead || o.Failure != nil, "a dead letter says why")
		require.True(t, !v.reply || o.Failure != nil && !c.replied && o.Verdict != lifecycle.Retry,
			"one reply, when it is over")
		require.True(t, o.Delay >= 0 && o.Delay <= maxAskedDelay)
		require.True(t, o.Verdict != lifecycle.Retry || c.end.Interrupted || c.attempt < c.retries.MaxAttempts)
	})
}

func TestRefuse(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &route{}
	in := workers.Only(&workers.Worker{Owner: "o", Name: "w", Version: "2-b", Number: 2,
		Handlers: []events.Kind{events.Task, events.Fetch}})
	in.Versions = append(in.Versions, &workers.Worker{Owner: "o", Name: "w", Version: "1-a", Number: 1,
		Handlers: []events.Kind{events.Task}})
	r.install(in)
	for _, c := range []struct {
		what    string
		e       lifecycle.Delivery
		route   *route
		reason  events.Reason
		version string
		message string
	}{
		{"active", lifecycle.Delivery{Event: events.Event{Kind: events.Fetch}}, r, "", "2-b", ""},
		{"pin", lifecycle.Delivery{Event: events.Event{Kind: events.Task, Version: "1-a"}}, r, "", "1-a", ""},
		{"pin by number", lifecycle.Delivery{Event: events.Event{Kind: events.Task, Version: "1"}}, r, "", "1-a", ""},
		{"pin unknown", lifecycle.Delivery{Event: events.Event{Kind: events.Task,
			Version: "3"}}, r, events.ReasonNoWorker, "",
			`worker o/w has no version "3", or no longer: the active one is 2-b`},
		{"no route", lifecycle.Delivery{Event: events.Event{Kind: events.Task}}, nil, events.ReasonNoWorker, "",
			"there is no worker o/w"},
		{"removed", lifecycle.Delivery{Event: events.Event{Kind: events.Task}}, &route{}, events.ReasonNoWorker, "",
			"there is no worker o/w"},
		{"no handler", lifecycle.Delivery{Event: events.Event{Kind: events.Scheduled}}, r, events.ReasonNoHandler, "2-b",
			"worker o/w has no scheduled handler"},
		{"pinned version has no handler", lifecycle.Delivery{Event: events.Event{Kind: events.Fetch,
			Version: "1-a"}}, r, events.ReasonNoHandler, "1-a",
			"worker o/w has no fetch handler"},
		{"deadline", lifecycle.Delivery{Event: events.Event{Kind: events.Task, Deadline: now,
			Header: events.Header{"deadline": {"1970-01-01T00:16:40Z"}}}}, r, events.ReasonExpired, "2-b",
			"its deadline 1970-01-01T00:16:40Z passed before it could start"},
		{"deadline to come", lifecycle.Delivery{Event: events.Event{Kind: events.Task,
			Deadline: now.Add(1)}}, r, "", "2-b", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.e.Owner, c.e.Worker = "o", "w"
			v, f := refuse(&c.e, c.route, now)
			if c.version != "" {
				require.Equal(t, c.version, v.worker.Version)
			}
			if c.reason == "" {
				require.Nil(t, f)
				return
			}
			require.Equal(t, c.reason, f.Reason)
			require.Equal(t, c.message, f.Message)
		})
	}
	for _, k := range events.Kinds {
		want := lifecycle.Dead
		if k == events.Fetch {
			want = lifecycle.Ack
		}
		v := refusal(request{kind: k, waits: true}, events.Fail(events.ReasonNoWorker, "x"))
		require.Equal(t, want, v.outcome.Verdict)
		require.True(t, v.reply)
		require.Equal(t, lifecycle.Dead, refusal(request{kind: k}, events.Fail(events.ReasonNoWorker, "x")).outcome.Verdict,
			"no one would know")
		require.Equal(t, lifecycle.Ack, refusal(request{kind: k, direct: true}, events.Fail(events.ReasonCrash, "x")).
			outcome.Verdict)
	}
}

func TestRetryDelay(t *testing.T) {
	r := workers.DefaultRetries
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32} {
		require.Equal(t, want*time.Second, retryDelay(r, n+1, half))
	}
	require.Equal(t, 50*time.Second, retryDelay(r, 7, half), "the longest, less room for jitter")
	require.Equal(t, 800*time.Millisecond, retryDelay(r, 1, func() float64 { return 0 }))

	none := workers.Retries{Jitter: new(0.)}.OrDefault()
	require.Equal(t, time.Second, retryDelay(none, 1, func() float64 { return 0 }), "no jitter is not the default")

	rapid.Check(t, func(t *rapid.T) {
		r := workers.Retries{
			Initial: workers.Millis(time.Duration(rapid.Int64Range(1, 3600_000).Draw(t, "initial")) * time.Millisecond),
			Factor:  rapid.Float64Range(1, 10).Draw(t, "factor"),
			Jitter:  new(rapid.Float64Range(0, 1).Draw(t, "jitter")),
		}
		r.Max = r.Initial + workers.Millis(time.Duration(rapid.Int64Range(0, 82800_000).Draw(t, "more"))*time.Millisecond)
		r = r.OrDefault()
		require.NoError(t, r.Validate())
		at := rapid.Float64Range(0, 0.999999).Draw(t, "rand")
		last := time.Duration(0)
		for attempt := 1; attempt < 100; attempt++ {
			d := retryDelay(r, attempt, func() float64 { return at })
			require.GreaterOrEqual(t, d, last, "delays never get shorter but by jitter")
			require.LessOrEqual(t, d, r.Max.Duration())
			require.GreaterOrEqual(t, d, time.Millisecond)
			last = d
		}
	})
}

// The worker that a manifest names is notified of dead letters, and of nothing else.
func TestDeadSettlementsSayWhoIsTold(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 4, OwnerMaxQueued: 4})
	hook := &events.DeadHook{Worker: "undertaker"}
	v := newVersion(&workers.Worker{Owner: "a", Name: "w", Version: "1-a", Spec: workers.Spec{OnDead: hook}})
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "a", Worker: "w"}}
	f := events.Fail(events.ReasonException, "boom")
	require.Equal(t, hook, d.settlement(e, v, verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Failure: f}}, 0).
		Outcome.OnDead)
	require.Equal(t, hook, d.settlement(e, v, verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Retry, Failure: f}},
		0).Outcome.OnDead, "there may be no room for it to wait")
	require.Nil(t, d.settlement(e, v, verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Ack, Failure: f}}, 0).
		Outcome.OnDead)
	require.Nil(t, d.settlement(e, nil, verdict{outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Failure: f}}, 0).
		Outcome.OnDead)
}
