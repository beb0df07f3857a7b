package consumer

import (
	"fmt"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// Config is the configuration of a Consumer. Start from DefaultConfig.
type Config struct {
	// Prefix is the first token of every subject. Streams and buckets have fixed names, so two
	// fleets in one NATS account are not supported.
	Prefix events.Subjects
	// Node names this process in dead letters and logs.
	Node string
	// Instance names this process, and no other one, if a supervisor will report how it ended. "": nobody will.
	Instance string
	// Ended says how other processes of the same supervisor ended. Run records it for the fleet.
	Ended []crashnote.Ended
	// Window is the number of places for events that this process holds at once: asked for, queued, running, waiting
	// for a retry, or being settled. An event takes a place for each PlaceBytes, rounded up. At least MinWindow.
	Window int
	// LaneHeld is how many events of a lane may be in flight or asked for while the lane's events end as soon as they
	// run. The others wait in the stream. It should be below what an owner may have queued, so that the events are not
	// parked, and at least a sixteenth of Window. 0: as many as there is room for.
	LaneHeld int
	// Overtake is the backlog that a lane must have for the events of owners with few events there to overtake it. 0:
	// never.
	Overtake int
	// Observers see the events that are delivered. nil = none.
	Observers *lifecycle.Observers
	// AckWait is how long the server waits for the renewal of an event's lease before it delivers the event to another
	// process. So it is also how long the events of a crashed process wait. At least 200 ms.
	AckWait time.Duration
	// Heartbeat is the interval of the server's heartbeats on a lane without traffic. A lane that is silent for two and
	// a half of them is asked again. At least 100 ms.
	Heartbeat time.Duration
	// MaxBytes limits the event stream and the stream of parked events, each. Publishers are refused when the event
	// stream is full. JetStream reserves this much disk.
	MaxBytes int64
	// Replicas is the number of replicas of every stream and consumer: 1, 3 or 5.
	Replicas int
	// ReplyPrefixes are the prefixes that a Reply-To may have. events.OwnerInPrefix stands for the event's owner.
	ReplyPrefixes []string
	// DeadLetterAge is how long dead letters are kept.
	DeadLetterAge time.Duration
	// DeadLetterBytes limits the stream of dead letters. JetStream reserves this much disk.
	DeadLetterBytes int64
	// LongRetry is the longest time that an event waits in the process for its next run. For longer waits it is delayed
	// in JetStream, where it takes no room in the window. At least 0.
	LongRetry time.Duration
	// PartPatience is how long the handler of a live body waits for the next part.
	PartPatience time.Duration
	// SettleWithin is how long an event may take to be checked or settled before it is set aside: it leaves the
	// process, and is delivered again later. Time without a connection does not count. At least 1 s.
	SettleWithin time.Duration
	// OwnerMaxWaiting is about how many events of one owner may wait in JetStream for their time. Further delayed
	// events are refused. 0: any number.
	OwnerMaxWaiting int
	// Duplicates is for how long the event stream remembers message ids. At least 100 ms.
	Duplicates time.Duration
	// ResultAge is how long results of idempotent workers are kept. At least 1 s.
	ResultAge time.Duration
	// Catalog has the workers and the policies of owners. nil: there are none.
	Catalog *catalog.Catalog
	// OnLog, when it is not nil, is called with each line that the consumer writes to a worker's output. It must not
	// block, nor keep the line.
	OnLog func(*events.LogLine)
	// Sources are the connections that have sources of workers. Without "", which is nc, no source is read.
	Sources sources.Conns
	// RunHistory: the fleet has a run history, and its owners keep to their shares of that stream too.
	RunHistory bool
	// Calls enables the call bridge.
	Calls bool
	// Step, when it is not nil, is called at each Step, on the goroutine that reaches it. Tests use it to end the
	// process between two steps. In production it is nil and costs nothing.
	Step func(Step)
}

// PlaceBytes is how many bytes of an event's message, with its headers, take one place in the window. So the window
// bounds the memory of events, too.
const PlaceBytes = 256 << 10

// placesOf is how many places an event takes whose message has size bytes.
func placesOf(size int) int { return 1 + max(0, size-1)/PlaceBytes }

// MinWindow is the smallest window: two credits for each lane.
const MinWindow = 2 * events.Lanes

// DefaultConfig is the configuration of a process without settings. MaxBytes is 2 GiB: about two million
// events of 1 KB, and small enough for JetStream's default share of a laptop's disk, twice.
func DefaultConfig() Config {
	return Config{
		Prefix: events.DefaultPrefix, Window: 4096, AckWait: 30 * time.Second, Heartbeat: 2 * time.Second,
		MaxBytes: 2 << 30, Replicas: 1, ReplyPrefixes: []string{"_INBOX."},
		DeadLetterAge: 30 * 24 * time.Hour, DeadLetterBytes: 1 << 30, LongRetry: 5 * time.Second,
		PartPatience: 30 * time.Second, SettleWithin: 3 * time.Minute, OwnerMaxWaiting: 100_000, Overtake: 10_000,
		Duplicates: 2 * time.Minute, ResultAge: 24 * time.Hour, Calls: true,
	}
}

// Validate returns an error that names the field that is wrong, its value and what is allowed.
func (c Config) Validate() error {
	switch {
	case !events.ValidName(string(c.Prefix)):
		return fmt.Errorf("consumer: Prefix is %q: it is 1 to %d of A-Z a-z 0-9 _ -", string(c.Prefix), events.MaxName)
	case c.Node == "" || strings.ContainsAny(c.Node, "\r\n"):
		return fmt.Errorf("consumer: Node is %q: it is one line that names this process", c.Node)
	case c.Window < MinWindow || c.Window > 1<<20:
		return fmt.Errorf("consumer: Window is %d: it is %d to %d", c.Window, MinWindow, 1<<20)
	case c.AckWait < 200*time.Millisecond || c.AckWait > time.Hour:
		return fmt.Errorf("consumer: AckWait is %s: it is 200ms to 1h", c.AckWait)
	case c.Heartbeat < 100*time.Millisecond || c.Heartbeat > time.Minute:
		return fmt.Errorf("consumer: Heartbeat is %s: it is 100ms to 1m", c.Heartbeat)
	case c.MaxBytes < 1<<20:
		return fmt.Errorf("consumer: MaxBytes is %d: it is at least %d", c.MaxBytes, 1<<20)
	case c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return fmt.Errorf("consumer: Replicas is %d: it is 1, 3 or 5", c.Replicas)
	case c.LaneHeld != 0 && (c.LaneHeld < c.Window/16 || c.LaneHeld > c.Window):
		return fmt.Errorf("consumer: LaneHeld is %d: it is 0, or a sixteenth of Window (%d) to all of it", c.LaneHeld, c.Window)
	case c.Overtake < 0:
		return fmt.Errorf("consumer: Overtake is %d: it is at least 0", c.Overtake)
	case c.PartPatience <= 0:
		return fmt.Errorf("consumer: PartPatience is %s: it is more than 0s", c.PartPatience)
	case c.SettleWithin < time.Second:
		return fmt.Errorf("consumer: SettleWithin is %s: it is at least 1s", c.SettleWithin)
	case c.LongRetry < 0:
		return fmt.Errorf("consumer: LongRetry is %s: it is at least 0s", c.LongRetry)
	case c.OwnerMaxWaiting < 0:
		return fmt.Errorf("consumer: OwnerMaxWaiting is %d: it is at least 0", c.OwnerMaxWaiting)
	case c.Duplicates < 100*time.Millisecond || c.Duplicates > 24*time.Hour:
		return fmt.Errorf("consumer: Duplicates is %s: it is 100ms to 24h", c.Duplicates)
	case c.ResultAge < time.Second:
		return fmt.Errorf("consumer: ResultAge is %s: it is at least 1s", c.ResultAge)
	case c.DeadLetterBytes < 1<<20:
		return fmt.Errorf("consumer: DeadLetterBytes is %d: it is at least %d", c.DeadLetterBytes, 1<<20)
	case c.DeadLetterAge < time.Minute:
		return fmt.Errorf("consumer: DeadLetterAge is %s: it is at least 1m", c.DeadLetterAge)
	}
	return c.validateReplyPrefixes()
}

func (c Config) validateReplyPrefixes() error {
	for _, p := range c.ReplyPrefixes {
		if err := events.CheckReplyPrefix(p, c.Prefix); err != nil {
			return fmt.Errorf("consumer: ReplyPrefixes has a %w", err)
		}
	}
	return nil
}

func (c Config) decoder() events.Decoder {
	return events.Decoder{Subjects: c.Prefix, ReplyPrefixes: c.ReplyPrefixes}
}

// answerWait is how long the server may take to answer before this process asks again.
func (c Config) answerWait() time.Duration { return min(c.AckWait/3, 5*time.Second) }

// longAbsence is the time without renewals after which leases may be over.
func (c Config) longAbsence() time.Duration { return c.AckWait * 2 / 3 }

// parkedWindow is how long JetStream remembers the ids of parked events. A process that dies between parking an event
// and its ack leaves both. The process that gets the event then asks within this time, if the fleet is alive.
func (c Config) parkedWindow() time.Duration { return max(2*time.Minute, 4*c.AckWait) }

// movedWindow is how long JetStream remembers the ids of delayed events.
func (c Config) movedWindow() time.Duration { return max(5*time.Minute, 4*c.AckWait) }

// hasBacklog reports whether so many messages wait in a lane that events may overtake them.
func (c Config) hasBacklog(pending uint64) bool {
	return c.Overtake > 0 && pending >= uint64(c.Overtake)
}

// slowHeld is how many events of a lane may be in flight or asked for when they are slow: more than an owner may have
// queued, and few enough that an event behind them does not wait long until those that are too many are parked.
func (c Config) slowHeld() int {
	return min(c.Window, max(c.Window/4, 2*c.LaneHeld))
}

// chunk is the smallest grant that is worth a request at once.
func (c Config) chunk() int { return max(1, c.Window/16) }

// Dispatcher takes events to run. Submit never blocks and never refuses. Each event comes back in exactly one final
// Settlement (Ack, Dead, Return or Park), or in a Retry, after which it is submitted again.
type Dispatcher interface {
	Submit(batch []*lifecycle.Delivery)
	// Through reports that all parked events of owner were submitted, after parks of its settlements with Park were
	// carried out: new events no longer have to wait behind parked ones. It returns whether these are all such
	// settlements: then both sides count from 0 again.
	Through(owner string, parks uint64) bool
	// Cancel settles those of the events that wait as cancelled, and returns them. With running, it has the runs of the
	// others end soon.
	Cancel(list []*lifecycle.Delivery, running bool) (waited []*lifecycle.Delivery)
}

// Step is a point between two actions: the process may complete the first and die before the second.
// docs/development/guarantees.md says what happens to an event then. Tests end the process at each step.
type Step string

// The steps. Each is named after the completed action.
const (
	StepReplied      Step = "replied"       // the final reply is published; the event is neither acked nor dead
	StepDeadStored   Step = "dead-stored"   // the dead letter is stored; the event is not acked
	StepDeadNotified Step = "dead-notified" // the notice of the dead letter is published; the event is not acked
	StepClaimed      Step = "claimed"       // a replay is claimed; it has not run
	StepEndStored    Step = "end-stored"    // how a replay ended is stored; its event is not acked
	StepParkStored   Step = "park-stored"   // the parked event is stored; the event is not acked
	StepOvertaken    Step = "overtaken"     // an event that was never delivered is parked; it is still in its lane, too
	StepReturnStored Step = "return-stored" // the record says that nothing ran; the event is not given back
	StepRetryStored  Step = "retry-stored"  // the failed run is recorded; the event waits for the next
	StepRetryDue     Step = "retry-due"     // the record says that the next run has begun; it has not
	StepMoveNoted    Step = "move-noted"    // the record says that the event is being delayed; it is not yet
	StepDelayed      Step = "delayed"       // the event waits for its time among the schedules; it is not acked
	StepResultStored Step = "result-stored" // the result of an idempotent worker is stored; the event is not acked
	StepAcked        Step = "acked"         // the acks are sent; the server has not confirmed them
	StepConfirmed    Step = "confirmed"     // the acks are confirmed; what was stored for the event elsewhere is still there
)

// skipsTicks reports whether the ticks of a worker's schedules are left out because of a pause.
func (c Config) skipsTicks(owner, worker string) bool {
	return c.Catalog.Policy(owner).SkipsTicks(worker)
}
