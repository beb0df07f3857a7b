package consumer

import (
	"fmt"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Config of a Consumer. Take DefaultConfig and change what differs.
type Config struct {
	// Prefix is the first token of every subject. Streams and buckets have fixed names, so two
	// fleets in one NATS account are not supported.
	Prefix events.Subjects
	// Node names this process in dead letters and logs.
	Node string
	// Window is the most events this process holds at once: asked for, queued, running, waiting
	// for a retry, or being settled. At least MinWindow.
	Window int
	// LaneHeld is how many events of a lane are held, or asked for, while they end as soon as they run: more wait in the stream. It should be below
	// what an owner may have queued, so that these are not parked, and at least a sixteenth of Window. 0: as many as there is room for.
	LaneHeld int
	// Overtake is how many events of a lane must wait before those of owners that have few there are brought past them. 0: never.
	Overtake int
	// AckWait is how long the server waits for a sign of life before it gives an event to another
	// process; so it is also how long the events of a crashed process wait. At least 200 ms.
	AckWait time.Duration
	// Heartbeat is how often the server says that a lane without traffic lives. A lane that is
	// silent for two and a half of them is asked again. At least 100 ms.
	Heartbeat time.Duration
	// MaxBytes bounds the event stream and the stream of parked events, each; publishers are refused
	// when it is full. JetStream reserves this much disk.
	MaxBytes int64
	// Replicas of every stream and consumer: 1, 3 or 5.
	Replicas int
	// ReplyPrefixes are what a Reply-To may begin with; events.OwnerInPrefix stands for the event's owner.
	ReplyPrefixes []string
	// DeadLetterAge is how long dead letters are kept.
	DeadLetterAge time.Duration
	// DeadLetterBytes bounds the stream of dead letters. JetStream reserves this much disk.
	DeadLetterBytes int64
	// LongRetry is the longest that an event waits for its next run in the process; for longer it is put off in JetStream, where it takes
	// no room in the window. At least 0.
	LongRetry time.Duration
	// PartPatience is how long the handler of a live body waits for the next part.
	PartPatience time.Duration
	// OwnerMaxWaiting is about how many events of one owner may wait in JetStream for their time: those that are to be delayed beyond that are
	// refused. 0: any number.
	OwnerMaxWaiting int
	// Duplicates is for how long the event stream remembers message ids. At least 100 ms.
	Duplicates time.Duration
	// ResultAge is how long results of idempotent workers are kept. At least 1 s.
	ResultAge time.Duration
	// Idempotent reports whether a worker is: an event of it that has succeeded is not run again. It is called for each
	// delivery, from one goroutine. nil: none is.
	Idempotent func(owner, worker string) bool
	// Calls switches the call bridge on.
	Calls bool
	// Step, when it is not nil, is called at each Step, on the goroutine that has got there: for tests that
	// end the process between two steps. It is nil in production, and costs nothing then.
	Step func(Step)
}

// MinWindow is the smallest window: two credits for each lane.
const MinWindow = 2 * events.Lanes

// DefaultConfig is what a process has that was told nothing. MaxBytes is 2 GiB: about two million
// events of 1 KB, and small enough for JetStream's default share of a laptop's disk, twice.
func DefaultConfig() Config {
	return Config{
		Prefix: events.DefaultPrefix, Window: 1024, AckWait: 30 * time.Second, Heartbeat: 2 * time.Second,
		MaxBytes: 2 << 30, Replicas: 1, ReplyPrefixes: []string{"_INBOX."},
		DeadLetterAge: 30 * 24 * time.Hour, DeadLetterBytes: 1 << 30, LongRetry: 5 * time.Second, PartPatience: 30 * time.Second, OwnerMaxWaiting: 100_000, Overtake: 10_000, Duplicates: 2 * time.Minute, ResultAge: 24 * time.Hour, Calls: true,
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
