package control

import (
	"context"
	"time"
)

// Flow is what runs in one process, and what has happened there since it started. Rates follow from two of them.
type Flow struct {
	Member
	Build string    `json:"build"`
	At    time.Time `json:"at"` // by the clock of the process

	Queued   int   `json:"queued"`  // events that wait for a thread
	Running  int   `json:"running"` // attempts in progress
	Held     int   `json:"held"`    // events of the stream that the process is responsible for
	Waiting  int   `json:"waiting"` // of these, events that wait here for their next attempt
	Isolates int   `json:"isolates"`
	Heap     int64 `json:"heapBytes"`
	Draining bool  `json:"draining,omitempty"`
	// Cells is how many cells the process has, and CellBytes their memory. Heap has that of their V8 too.
	Cells     int   `json:"cells,omitempty"`
	CellBytes int64 `json:"cellBytes,omitempty"`
	// Busy is which share of what the process can do it did in the last 10 s, 0 to 1: of the time of its threads or of its
	// slots, whichever is more. nil: it has just started, or is of an earlier release.
	Busy *float64 `json:"busy,omitempty"`

	Retried  uint64    `json:"retried"`  // attempts that failed, and after which the event runs again
	Failed   uint64    `json:"failed"`   // events that failed for good
	Parked   uint64    `json:"parked"`   // times an event was parked
	Wait     Histogram `json:"wait"`     // of events, from their arrival in the process to their start
	Duration Histogram `json:"duration"` // of attempts that started and ended

	// Owners are those with events here, at most MaxFlowOwners. Those with the most waiting events come first.
	Owners []OwnerFlow `json:"owners"`

	// Limits are the owners and workers that have a limit of the whole fleet and events here, at most MaxFlowLimits. Those
	// with the most waiting events come first. Earlier releases do not tell them.
	Limits []LimitFlow `json:"limits,omitempty"`

	// Workers are those that have run here, at most MaxFlowWorkers: those that ran most in the last minutes. Earlier
	// releases do not tell them.
	Workers []WorkerFlow `json:"workers,omitempty"`

	// Minutes are the last ones that are over, the oldest first, if they were asked for. A process that has just started
	// has fewer.
	Minutes []Minute `json:"minutes,omitempty"`

	// Paused are paused owners and workers as this process knows them, at most MaxFlowPaused, and PausedInAll how many
	// there are. Earlier releases do not tell them.
	Paused      []Paused `json:"paused,omitempty"`
	PausedInAll int      `json:"pausedInAll,omitempty"`

	// Processes are all processes of the fleet that this one knows, including itself. Left are the IDs of the last ones
	// that reported that they leave.
	Processes []Member `json:"processes"`
	Left      []string `json:"left,omitempty"`
}

// AskFlow says what an answer has beside what there is now.
type AskFlow struct {
	Minutes bool `json:"minutes,omitempty"` // the last hour, by the minute
}

// Minute is what happened in one minute, in a process, or there to the workers of an owner.
type Minute struct {
	At       time.Time `json:"at"`                 // when it began, by the clock of the process
	Ended    uint64    `json:"ended"`              // attempts that started
	Failed   uint64    `json:"failed"`             // attempts that failed, in a process with events that could not start
	Duration []uint64  `json:"duration,omitempty"` // of attempts: the buckets of Flow.Duration
}

// KeptMinutes is how many minutes a process keeps.
const KeptMinutes = 60

// MaxFlowPaused is how many paused owners and workers a Flow has at most.
const MaxFlowPaused = 20

// OwnerFlow is an owner that has events in a process.
type OwnerFlow struct {
	Owner   string `json:"owner"`
	Queued  int    `json:"queued"`
	Running int    `json:"running"`
	Parking bool   `json:"parking,omitempty"` // its further events are parked
}

// LimitFlow is an owner, or a worker, of which at most Limit may run in all processes together.
type LimitFlow struct {
	Owner   string `json:"owner"`
	Worker  string `json:"worker,omitempty"` // "" = the limit of the owner
	Limit   int    `json:"limit"`
	Queued  int    `json:"queued"`
	Running int    `json:"running"` // attempts that count for the limit
}

// MaxFlowLimits is how many limits a Flow has at most.
const MaxFlowLimits = 20

// WorkerFlow is what a worker has done in a process since it was installed there.
type WorkerFlow struct {
	Worker   string    `json:"worker"`   // OWNER/WORKER
	State    string    `json:"state"`    // active, idle, ephemeral or offline
	Running  int       `json:"running"`  // attempts in progress
	Ended    uint64    `json:"ended"`    // attempts that started
	Failed   uint64    `json:"failed"`   // of these
	Duration []uint64  `json:"duration"` // of these: the buckets of Flow.Duration
	Last     time.Time `json:"last,omitzero"`
}

// MaxFlowWorkers is how many workers a Flow has at most.
const MaxFlowWorkers = 50

// MaxFlowOwners is how many owners a Flow has at most.
const MaxFlowOwners = 20

// Histogram counts durations since a process started.
type Histogram struct {
	Count uint64 `json:"count"`
	// Bounds are the upper bounds of the buckets, seconds. Buckets are how many were at most that long, and longer than
	// the bound before. Longer ones are only in Count.
	Bounds  []float64 `json:"bounds"`
	Buckets []uint64  `json:"buckets"`
}

// Since returns what h counts beyond an earlier count of the same process.
func (h Histogram) Since(earlier Histogram) Histogram {
	d := Histogram{Count: h.Count - min(h.Count, earlier.Count), Bounds: h.Bounds, Buckets: make([]uint64, len(h.Buckets))}
	for i, n := range h.Buckets {
		if d.Buckets[i] = n; i < len(earlier.Buckets) {
			d.Buckets[i] -= min(n, earlier.Buckets[i])
		}
	}
	return d
}

// Add returns the sum of two counts. Processes of another release may have other bounds; what they count is left out
// then.
func (h Histogram) Add(o Histogram) Histogram {
	if h.Count == 0 && len(h.Buckets) == 0 {
		return o
	}
	if len(h.Buckets) != len(o.Buckets) {
		return h
	}
	sum := Histogram{Count: h.Count + o.Count, Bounds: h.Bounds, Buckets: make([]uint64, len(h.Buckets))}
	for i := range h.Buckets {
		sum.Buckets[i] = h.Buckets[i] + o.Buckets[i]
	}
	return sum
}

// Quantile estimates a quantile, as Prometheus does: evenly within a bucket. ok is false when nothing was counted. What
// is beyond the last bound is taken for that bound.
func (h Histogram) Quantile(q float64) (d time.Duration, ok bool) {
	if h.Count == 0 || len(h.Bounds) == 0 || len(h.Bounds) != len(h.Buckets) {
		return 0, false
	}
	rank, below, lower := q*float64(h.Count), 0.0, 0.0
	for i, n := range h.Buckets {
		if in := float64(n); in > 0 && below+in >= rank {
			seconds := lower + (h.Bounds[i]-lower)*max(0, rank-below)/in
			return time.Duration(seconds * float64(time.Second)), true
		}
		below += float64(n)
		lower = h.Bounds[i]
	}
	return time.Duration(lower * float64(time.Second)), true
}

func (f Flow) from() (self Member, known []Member, left []string) {
	return f.Member, f.Processes, f.Left
}

// flow answers for this process.
func (s *Server) flow(_ context.Context, r AskFlow) (Flow, error) {
	f := s.cfg.Process.Flow()
	if r.Minutes {
		f.Minutes = s.cfg.Process.Minutes("")
	}
	f.Build = s.cfg.Build
	f.Member, f.Processes, f.Left = s.cfg.Process.Members()
	return f, nil
}

// Flows asks all processes of the fleet what runs there, and waits a second at most for those that another has named.
// missing are processes that did not answer. nats.ErrNoResponders means that no process answers.
func (c *Client) Flows(ctx context.Context) (all []Flow, missing []Member, err error) {
	return AskFlows(ctx, c, AskFlow{})
}

// AskFlows does what Flows does, for what r says.
func AskFlows(ctx context.Context, c *Client, r AskFlow) (all []Flow, missing []Member, err error) {
	return askEach[Flow](ctx, c, "flow", r, time.Second)
}

// AskWorkersFlow names an owner, or one worker of it.
type AskWorkersFlow struct {
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	// Minutes asks for the last hour of the owner, by the minute.
	Minutes bool `json:"minutes,omitempty"`
}

// WorkersFlow is what the workers of an owner, or one of them, do in one process. Counts are those since a worker was
// installed there; rates follow from two answers.
type WorkersFlow struct {
	Member
	At time.Time `json:"at"` // by the clock of the process
	OwnerFlow

	Ended    uint64    `json:"ended"`    // attempts that started, of all that were asked for
	Failed   uint64    `json:"failed"`   // of these
	Duration Histogram `json:"duration"` // of these

	// Workers are those that have run here, at most MaxFlowWorkers: those that ran most in the last minutes. One that
	// was asked for by its name is among them once the process has it.
	Workers []WorkerFlow `json:"workers"`

	// Minutes are those of the owner, if they were asked for. One in which others did more says nothing.
	Minutes []Minute `json:"minutes,omitempty"`

	Processes []Member `json:"processes"` // as in the answer of flow
	Left      []string `json:"left,omitempty"`
}

func (f WorkersFlow) from() (self Member, known []Member, left []string) {
	return f.Member, f.Processes, f.Left
}

// workersFlow answers for this process.
func (s *Server) workersFlow(_ context.Context, r AskWorkersFlow) (WorkersFlow, error) {
	p := s.cfg.Process
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return WorkersFlow{}, err
	}
	if r.Owner == "" {
		return WorkersFlow{}, wrongField("owner", " is missing: the workers are of one owner")
	}
	for what, name := range map[string]string{"owner": r.Owner, "worker": r.Worker} {
		if err := CheckName(what, name); err != nil {
			return WorkersFlow{}, err
		}
	}
	f := p.WorkersFlow(r.Owner, r.Worker)
	if r.Minutes {
		f.Minutes = p.Minutes(r.Owner)
	}
	f.Member, f.Processes, f.Left = p.Members()
	return f, nil
}

// AskWorkersFlows asks all processes what the workers of an owner do, and waits a second at most for those that another
// has named. missing are processes that did not answer. nats.ErrNoResponders means that no process answers.
func AskWorkersFlows(ctx context.Context, c *Client,
	r AskWorkersFlow) (all []WorkersFlow, missing []Member, err error) {
	return askEach[WorkersFlow](ctx, c, "workers.flow", r, time.Second)
}

// Storage says whether JetStream acknowledges events.
type Storage struct {
	Problem string `json:"problem,omitempty"` // why it does not, as this process knows; "" = it does
}

// AskStorage asks whether JetStream stores what is published, which is the same for every owner.
type AskStorage struct{ asker }

// storage answers what this process knows.
func (s *Server) storage(context.Context, AskStorage) (a Storage, err error) {
	if why := s.cfg.Process.Unstored(); why != nil {
		a.Problem = why.Error()
	}
	return a, nil
}
