// Package hostcalls has the operations that the JavaScript of a run asks of Go, and whose answers come later:
// subrequests, bodies that JavaScript does not read, WebSockets, calls of bindings and services, sends, cryptography,
// compression and HTMLRewriter.
//
// Calls has those of one run. Each command that begins a call is a row of begins. Each kind of call keeps its state in
// a type of its own. End ends all of them when the run ends. The package reaches the run, its thread and its context
// only through the interface Run. "On the thread" means that the pinned thread of the run calls a function, between
// turns.
package hostcalls

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Run is the run to which calls belong.
type Run interface {
	ID() uint64
	Attempt() *lifecycle.Attempt
	Limits() *workers.Limits
	Deadline() time.Time // the end of its wall-clock limit

	// Hold counts n bytes that Go holds for the run, unless that exceeds a limit. Drop uncounts them. Any goroutine may
	// call both, and ChargeOwner, which charges CPU time to the owner that is no time of the run's code.
	Hold(n int) error
	Drop(n int)
	ChargeOwner(cpu time.Duration)
	// Later has the thread call f, after calls of other owners that came before. Any goroutine may call it.
	Later(f func())
	// Pause is how long a client must wait until its next message is delivered. Any goroutine may call it.
	Pause() time.Duration

	// The thread calls the following.

	// Follow has f called after the turn that comes next, even if that turn leaves its thread.
	Follow(f func())
	// Call is the buffer in which the next turn is encoded.
	Call() *v8x.Call
	// Turn calls the run's JavaScript. It does not return if the turn goes away.
	Turn(call, body []byte)
	// Stop ends the run because it cannot continue.
	Stop(reason events.Reason, message string)
	// Charge adds CPU time that was used outside V8 to the run's.
	Charge(cpu time.Duration)
	CPULeft() time.Duration
	// Closed reports whether the context of the run is closed.
	Closed() bool
	// CanEnd reports whether the run can still end by itself.
	CanEnd() bool
	// BetweenEvents reports whether the run stands for what a persistent context does between events.
	BetweenEvents() bool
	// Log writes a line of output of the worker.
	Log(level, text string)
	// Calling says that a call of a service begins or is over. edge: it is the only one of the run.
	Calling(is, edge bool)
	// SocketGone says that a WebSocket which a client opened has ended.
	SocketGone()
}

// Host is the part of the process that handlers need.
type Host interface {
	bindings.Queues
	bindings.Caller
}

// Process is what the calls of all runs share.
type Process struct {
	Host     Host
	Egress   *egress.Client
	Offload  *offload.Pool
	Files    bindings.Files    // nil = requests for files fail
	Services bindings.Services // nil = calls of services fail

	Piped, Offloaded *atomic.Uint64 // bytes of bodies that no JavaScript reads; operations
	OffloadCPU       *atomic.Int64  // CPU time of those, nanoseconds
}

// Calls are the calls of one run. Only its thread uses them, unless a comment says otherwise.
type Calls struct {
	run     Run
	process *Process
	over    bool // the run is over

	pending map[float64]*call  // by id; nil until the first
	stalled int                // calls whose response waits for a reader
	parts   int                // number of parts of the event's body that were read
	session *bindings.Session  // of calls of bindings; nil until the first
	ctx     context.Context    //nolint:containedctx // of the calls, which end with it; nil until the first
	cancel  context.CancelFunc // nil until the first

	fetches   fetches
	sends     sends
	services  services
	offloads  offloads
	zips      zips
	rewriters rewriters
	sockets   sockets
	tcp       tcpSockets
	piped     piped
	lookups   chan struct{} // has a value for each name that is being looked up; nil until the first
}

// begins has the function that carries out a command, by the number of the command.
var begins = [...]func(*Calls, *v8x.Commands){
	js.CmdFetch:        func(r *Calls, in *v8x.Commands) { r.fetches.begin(r, in) },
	js.CmdFetchAbort:   func(r *Calls, in *v8x.Commands) { r.abortCall(in.Number()) },
	js.CmdFetchMore:    func(r *Calls, in *v8x.Commands) { r.fetches.more(r, in.Number()) },
	js.CmdUpload:       func(r *Calls, in *v8x.Commands) { r.fetches.takePiece(r, in) },
	js.CmdGather:       (*Calls).gather,
	js.CmdPull:         func(r *Calls, _ *v8x.Commands) { r.pullPart() },
	js.CmdQueue:        func(r *Calls, in *v8x.Commands) { r.sends.store(r, in) },
	js.CmdCall:         (*Calls).callBinding,
	js.CmdSubtle:       func(r *Calls, in *v8x.Commands) { r.offloads.subtle(r, in) },
	js.CmdZip:          func(r *Calls, in *v8x.Commands) { r.zips.step(r, in) },
	js.CmdZipClose:     func(r *Calls, in *v8x.Commands) { r.zips.end(in.Number()) },
	js.CmdRewrite:      func(r *Calls, in *v8x.Commands) { r.rewriters.step(r, in) },
	js.CmdRewriteClose: func(r *Calls, in *v8x.Commands) { r.rewriters.end(in.Number()) },
	js.CmdSocketOpen:   func(r *Calls, in *v8x.Commands) { r.sockets.begin(r, in) },
	js.CmdSocketAccept: func(r *Calls, in *v8x.Commands) { r.sockets.accept(r, in.Number()) },
	js.CmdSocketSend:   func(r *Calls, in *v8x.Commands) { r.sockets.send(in) },
	js.CmdSocketEnd:    func(r *Calls, in *v8x.Commands) { r.sockets.end(in) },
	js.CmdTCPOpen:      func(r *Calls, in *v8x.Commands) { r.tcp.begin(r, in) },
	js.CmdTCPSend:      func(r *Calls, in *v8x.Commands) { r.tcp.send(in) },
	js.CmdTCPMore:      func(r *Calls, in *v8x.Commands) { r.tcp.more(in) },
	js.CmdTCPEnd:       func(r *Calls, in *v8x.Commands) { r.tcp.end(in) },
	js.CmdTCPSecure:    func(r *Calls, in *v8x.Commands) { r.tcp.secure(in) },
	js.CmdLookUp:       (*Calls).lookUp,
}

// Begin carries out a command of JavaScript. It ignores commands that begin no call. A function of the table may keep
// its commands, so Go puts them on the heap: it gets a copy, for which only a call pays, and not every turn.
func (r *Calls) Begin(op int, in *v8x.Commands) {
	if op < len(begins) && begins[op] != nil {
		args := *in
		begins[op](r, &args)
		*in = args
	}
}

// Init is called once, before the run begins.
func (r *Calls) Init(run Run, process *Process) { r.run, r.process = run, process }

// End ends all calls: the run is over, and nothing of it may reach a later event.
func (r *Calls) End() {
	r.over = true
	for _, c := range r.pending {
		if c.gone != nil {
			c.gone()
		}
	}
	r.pending, r.fetches.queued = nil, nil
	for id := range r.piped.kept {
		r.release(id)
	}
	r.Cancel()
}

// Cancel cancels the calls under way. The watchdog calls it for the runs of a thread that is lost.
func (r *Calls) Cancel() {
	if r.cancel != nil {
		r.cancel()
	}
}

// Wait reports whether an answer is pending that calls into the run's JavaScript. A response that waits for a reader
// does not.
func (r *Calls) Wait() bool { return len(r.pending) > r.stalled }

// WaitsForService reports whether a call of a service is under way.
func (r *Calls) WaitsForService() bool { return r.services.calling > 0 }

// Renew begins a period of a run that stands for what a persistent context does between events. In each period it may
// make as many subrequests and sends as one event.
func (r *Calls) Renew() { r.fetches.made, r.sends.sent, r.services.tree = 0, 0, nil }

// callContext is the Go context of the calls. It ends with the run.
func (r *Calls) callContext() context.Context {
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithDeadline(context.Background(), r.run.Deadline())
	}
	return r.ctx
}

// call is an operation outside the isolate that a run requested: a subrequest or a send. Its answer is posted to the
// thread.
type call struct {
	id     float64
	cancel context.CancelFunc
	start  func()         // starts a subrequest that is queued
	span   lifecycle.Span // of a subrequest; nil = none is kept
	gone   func()         // called when the run ends before the call of a service; nil = nothing is to be done

	// These fields are a subrequest's. Only the thread uses them, except for the channels.
	paced   bool       // its response comes only as fast as its reader takes it
	active  bool       // it is under way
	stalled bool       // its response is not read: the rest of it waits
	asked   bool       // JavaScript reads its response
	first   []byte     // of its response, while nothing has asked for it
	unread  int        // bytes given since JavaScript asked for more
	pieces  chan piece // capacity 1; of the request's body
	// capacity 1; another chunk may come. true = the thread has not taken the last one: it goes to the sink of tap
	taken chan bool
	tap   pipe.Tap // where its response goes
	cf    string   // of a request to a service
	ended func()   // called when the exchange is over; nil = nothing is to be done
	grown int      // bytes held for its chunks, besides callBytes; for the exchange's goroutine
	coded bool     // its response comes in a content coding
	// in which the sink of tap takes its response; written before tap has the sink
	coding string
	whole  bool // the thread learns of the end of the exchange with its response; for the exchange's goroutine
}

// register makes a call of r.
func (r *Calls) register(id float64) *call {
	if r.pending == nil {
		r.pending = map[float64]*call{}
	}
	c := &call{id: id}
	r.pending[id] = c
	return c
}

// unregister removes a call. An answer to it is ignored.
func (r *Calls) unregister(c *call) {
	if r.pending[c.id] != c {
		return
	}
	delete(r.pending, c.id)
	if c.stalled {
		c.stalled = false
		r.stalled--
	}
}

// answer brings the answer to call c into the run's JavaScript. last says that nothing follows. An answer that comes
// too late is ignored. Any goroutine may call it.
func (r *Calls) answer(c *call, last bool, encode func(*v8x.Call) []byte) {
	r.run.Later(func() { c.deliver(r, last, encode) })
}

// deliver is answer on the thread itself. Like each turn it does not return if the turn goes away: what must follow is
// deferred, or queued before.
func (c *call) deliver(r *Calls, last bool, encode func(*v8x.Call) []byte) {
	if r.over || r.pending[c.id] != c {
		return
	}
	if last {
		r.unregister(c)
	}
	body := encode(r.run.Call())
	r.run.Turn(r.run.Call().Bytes(), body)
}
