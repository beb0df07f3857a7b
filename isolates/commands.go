package isolates

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// costlyOut is a number of bytes of commands. If a turn has more, the CPU time for carrying them out is measured and
// charged to the run.
const costlyOut = 4 << 10

// apply carries out the commands that JavaScript left in a turn of r. In a persistent context they may belong to other
// runs. Commands of a run that is over are ignored.
func (t *thread) apply(r *run, out []byte, now time.Time) {
	if len(out) > costlyOut {
		began := perowner.ThreadTime()
		defer func() { t.aside = perowner.ThreadTime() - began }()
	}
	in := v8x.ReadCommands(out)
	acting, jc := r, r.context
	for n := 0; ; n++ {
		op, ok := in.Next()
		if !ok {
			break
		}
		if r.over && (jc.life == nil || jc.closed) {
			t.applyAfterEnd(r, op, &in, now)
			continue
		}
		if n >= maxLoops {
			t.stop(r, events.ReasonCPU, "too many commands at once: at most "+strconv.Itoa(maxLoops))
			return
		}
		switch op {
		case js.CmdReply, js.CmdBody, js.CmdPipe, js.CmdPull, js.CmdResult, js.CmdFail, js.CmdDrained, js.CmdRetry,
			js.CmdNoRetry, js.CmdWaitFailed,
			js.CmdDecide, js.CmdBatchDone:
			q := r
			if id := uint64(in.Int()); id != 0 && id != r.id {
				q = jc.find(id)
			}
			if q != nil && !q.over {
				t.applyToRun(q, op, &in, now)
			}
		case js.CmdActing:
			acting = jc.find(uint64(in.Int()))
		case js.CmdHookDone:
			t.persistents.hookOver(jc, int(in.Int()))
		default:
			if acting != nil && !acting.over {
				t.applyEffect(acting, op, &in, now)
			}
		}
	}
	if err := in.Err(); err != nil && !r.over {
		r.fail(events.ReasonException, err.Error(), "")
	}
}

// applyAfterEnd handles the rest of the turn in which a run ended. It passes on only output, above all unhandled
// rejections, which V8 reports last.
func (t *thread) applyAfterEnd(r *run, op int, in *v8x.Commands, now time.Time) {
	if op == js.CmdLog || op == js.CmdUncaught {
		t.applyEffect(r, op, in, now)
	}
}

// applyToRun carries out a command about the reply or the end of the run.
func (t *thread) applyToRun(r *run, op int, in *v8x.Commands, now time.Time) {
	switch op {
	case js.CmdReply:
		r.takeReply(in, now)
	case js.CmdBody:
		r.takeBody(t, in)
	case js.CmdPipe:
		r.pipeBody(t, in.Number())
	case js.CmdPull:
		r.calls.Begin(op, in)
	case js.CmdResult:
		reply := &events.Reply{}
		r.readBody(in, reply)
		r.reply(reply, in.Bool(), now)
	case js.CmdFail:
		reason, message, stack := events.Reason(in.Text()), in.Clip(maxText), in.Clip(maxText)
		r.failure = events.NewFailure(reason, message, r.author(stack))
		if r.drained = in.Bool(); r.drained || !r.begun {
			r.finish()
		}
	case js.CmdDrained:
		r.drained = true
		r.finish()
	case js.CmdRetry:
		r.end.Retry = true
		r.end.RetryDelay = time.Duration(in.Number() * float64(time.Second))
	case js.CmdNoRetry:
		r.end.NoRetry = true
	case js.CmdWaitFailed:
		message, stack := in.Clip(maxText), in.Clip(maxText)
		t.pool.done.waitUntilFailed.Add(1)
		r.log("error", "waitUntil: "+message, r.logStack(stack))
		if r.attempt.Batch != nil && r.failure == nil { // a batch fails with it
			r.failure = events.NewFailure(events.ReasonException, "waitUntil: "+message, r.author(stack))
		}
	case js.CmdDecide:
		r.decide(in)
	case js.CmdBatchDone:
		if in.Bool() { // waitUntil has nothing left
			r.drained = true
			r.finish()
		}
	}
}

// takeReply carries out a command with a response, or with the head of one.
func (r *run) takeReply(in *v8x.Commands, now time.Time) {
	reply, bad := r.readReply(in)
	drained, streamed := in.Bool(), in.Bool()
	if in.Left() > 0 {
		reply.StatusText = in.Clip(maxText)
	}
	if in.Left() > 0 {
		if id := in.Number(); bad == nil {
			bad = r.thread.persistents.callsBetween(r.context).Offer(reply, id, r.attempt.Event)
		}
	}
	switch {
	case bad == nil && streamed:
		r.beginBody(r.thread, reply, now)
	case bad == nil:
		r.reply(reply, drained, now)
	default:
		if r.failure = bad; drained {
			r.finish()
		}
	}
}

// readReply reads the head and the body of a response. bad is not nil if its headers are too many or too long.
func (r *run) readReply(in *v8x.Commands) (reply *events.Reply, bad *events.Failure) {
	reply = &events.Reply{Status: int(in.Int())}
	if n := in.Size(); n > 4*maxHeaderBytes { // n includes the lengths of names and values
		in.Skip()
		bad = events.Fail(events.ReasonException, "the headers of the response have some %d bytes: at most %d", n, maxHeaderBytes)
	} else {
		reply.Headers = egress.HeadersBytes(in.KeptStrings(&r.thread.kept))
		if bad = checkHeaders(reply.Headers); bad == nil {
			reply.Headers = withoutConnection(reply.Headers)
		}
	}
	if s := reply.Status; bad == nil && s != http.StatusSwitchingProtocols && (s < 200 || s > 599) {
		bad = events.Fail(events.ReasonException, "the status of the response is %d: it is 200 to 599", s)
	}
	if e := r.attempt.Event; e != nil && e.Service != nil { // it goes into no message
		reply.Body = slices.Clone(in.View())
	} else {
		r.readBody(in, reply)
	}
	return reply, bad
}

// readBody reads the body of a response. A body that fits in no message is not kept.
func (r *run) readBody(in *v8x.Commands, reply *events.Reply) {
	body := in.View()
	if most := r.thread.pool.cfg.MaxReply; most > 0 && len(body) > most {
		reply.Dropped = len(body)
		return
	}
	reply.Body = slices.Clone(body)
}

// reply reports the response. If waitUntil has nothing left, the same report has the end.
func (r *run) reply(reply *events.Reply, drained bool, now time.Time) {
	t := r.thread
	if r.replied {
		return
	}
	if r.cancelled.Load() {
		t.end(r, lifecycle.End{})
		return
	}
	r.replied = true
	reply.Duration = now.Sub(r.start)
	t.out.reports = append(t.out.reports, lifecycle.Report{Attempt: r.attempt, Reply: reply})
	if r.drained = drained; drained {
		i := len(t.out.reports) - 1
		t.end(r, lifecycle.End{})
		t.out.reports[i].End = t.out.reports[i+1].End // one report for both
		t.out.reports = t.out.reports[:i+1]
	}
}

// applyEffect carries out a command that has effects outside the reply: output, timers, calls of Go.
func (t *thread) applyEffect(r *run, op int, in *v8x.Commands, now time.Time) {
	switch op {
	case js.CmdHandlers:
		r.context.handlers = int(in.Int())
	case js.CmdLog:
		level := levels[min(max(in.Int(), 0), int64(len(levels)-1))]
		r.log(level, in.Clip(maxText), "")
	case js.CmdUncaught:
		message := in.Clip(maxText)
		r.log("error", "uncaught: "+message, r.logStack(in.Clip(maxText)))
	case js.CmdTimer:
		r.setTimer(in.Number(), in.Number(), now)
	case js.CmdClear:
		id := in.Number()
		t.timers.Clear(r.timers[id])
		delete(r.timers, id)
	default:
		r.calls.Begin(op, in)
	}
}

func (r *run) setTimer(id, delayMs float64, now time.Time) {
	if len(r.timers) >= maxTimers {
		r.thread.stop(r, events.ReasonMemory, "more than "+strconv.Itoa(maxTimers)+" timers at once")
		return
	}
	if r.timers == nil {
		r.timers = map[float64]*timers.Timer[*run]{}
	}
	// After the run's own end every delay is equivalent.
	delay := time.Duration(min(max(delayMs, 0), 24*3600*1000) * float64(time.Millisecond))
	r.timers[id] = r.thread.timers.Set(now.Add(delay), r, id)
}

// Bounds of a response's headers. Servers and proxies on the way accept about as much, and a reply must fit into a
// message.
const (
	maxHeaders     = 100
	maxHeader      = 8 << 10  // name and value of one, bytes
	maxHeaderBytes = 64 << 10 // names and values of all, bytes
)

// checkHeaders returns a failure if the headers of a response are too many or too long. flat is name, value, name,
// value and so on.
func checkHeaders(flat []string) *events.Failure {
	if n := len(flat) / 2; n > maxHeaders {
		return events.Fail(events.ReasonException, "the response has %d headers: at most %d", n, maxHeaders)
	}
	total := 0
	for i := 0; i+1 < len(flat); i += 2 {
		n := len(flat[i]) + len(flat[i+1])
		if total += n; n > maxHeader {
			return events.Fail(events.ReasonException, "header %.64q of the response has %d bytes: at most %d", flat[i], n, maxHeader)
		}
	}
	if total > maxHeaderBytes {
		return events.Fail(events.ReasonException, "the headers of the response have %d bytes: at most %d", total, maxHeaderBytes)
	}
	return nil
}

// withoutConnection removes headers about the connection of a fetched response. They are not part of the response, and
// do not go into the reply. Names are in lower case. It changes flat.
func withoutConnection(flat []string) []string {
	var named map[string]bool // names that the Connection header lists
	found := false
	for i := 0; i+1 < len(flat); i += 2 {
		if found = found || ofConnection(flat[i]); flat[i] == "connection" {
			if named == nil {
				named = map[string]bool{}
			}
			for token := range strings.SplitSeq(flat[i+1], ",") {
				named[strings.ToLower(strings.TrimSpace(token))] = true
			}
		}
	}
	if !found {
		return flat
	}
	kept := flat[:0]
	for i := 0; i+1 < len(flat); i += 2 {
		if !ofConnection(flat[i]) && !named[flat[i]] {
			kept = append(kept, flat[i], flat[i+1])
		}
	}
	return kept
}

// ofConnection reports whether a header is for one connection only (RFC 9110, 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
		"proxy-connection", "te",
		"trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// decide notes what the handler decided about an event of its batch.
func (r *run) decide(in *v8x.Commands) {
	i, what, delay := in.Int(), lifecycle.Decision(in.Int()), in.Number()
	if i < 0 || i >= int64(len(r.attempt.Batch)) {
		return
	}
	if r.end.Items == nil {
		r.end.Items = make([]lifecycle.Item, len(r.attempt.Batch))
	}
	if r.end.Items[i].Decision != lifecycle.Undecided {
		return
	}
	r.end.Items[i] = lifecycle.Item{Decision: what, Delay: time.Duration(min(delay, 1e9) * float64(time.Second))}
	if what == lifecycle.Failed {
		r.end.Items[i].Failure = events.NewFailure(events.Reason(in.Text()), in.Clip(maxText), "")
	}
}
