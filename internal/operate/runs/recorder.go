package runs

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

const (
	// waiting and waitingBytes bound the records that wait to be stored. An owner has at most as much of both as is free.
	waiting, waitingBytes = 16 << 10, 16 << 20
	// ownerBytes is how many bytes of records an owner may make in a process in a second, and at once.
	ownerBytes = 16 << 20
	// batchRecords and batchBytes bound a batch. Only its last record is acknowledged.
	batchRecords, batchBytes = 256, 256 << 10
	// linger is how long a record waits for others of its batch.
	linger = 100 * time.Millisecond
	// patience is how long an acknowledgement may take.
	patience = 5 * time.Second
	// maxRecord is the largest record, as JSON.
	maxRecord = 512 << 10
)

// Why records were dropped, in the metric.
const (
	droppedQueue = "queue" // too many of the owner wait, because JetStream is slow
	droppedRate  = "rate"  // the owner makes more than ownerBytes in a second
	droppedStore = "store" // JetStream did not acknowledge them. Some of them may be stored
)

// Parts are what a Recorder uses of its process.
type Parts struct {
	NC *nats.Conn
	JS jetstream.JetStream
	// Policy returns the policy of an owner. It must be quick.
	Policy func(owner string) *workers.Policy
	// Stored notes that so many bytes were stored. nil: nothing is noted.
	Stored  func(bytes int)
	Metrics prometheus.Registerer
	Log     zerolog.Logger
}

// Recorder makes the records of a process. It is a lifecycle.Observer. A nil Recorder makes none.
type Recorder struct {
	lifecycle.Unobserved

	cfg   Config
	parts Parts
	share float64 // of the successes of owners without a rule of their own
	keeps bool    // these owners have a history at all
	lines lines
	rates perowner.Rates
	queue *perowner.Queue[*Record]
	log   *repeats.Log

	mu    sync.Mutex
	batch []*nats.Msg
	bytes int // of batch

	recorded prometheus.Counter
	dropped  *prometheus.CounterVec
}

// Open creates the stream and returns what records there. It returns nil when the fleet has no history. Add it to the
// observers of the process, and give it all log lines of handlers.
func Open(ctx context.Context, cfg Config, parts Parts) (*Recorder, error) {
	if !cfg.Keeps() {
		return nil, nil //nolint:nilnil // a nil Recorder records nothing
	}
	if err := cfg.create(ctx, parts.JS, parts.Log); err != nil {
		return nil, err
	}
	r := &Recorder{
		cfg: cfg, parts: parts, rates: perowner.Rates{PerSecond: ownerBytes, Burst: ownerBytes},
		log: repeats.New(parts.Log),
		recorded: prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_runs_recorded_total",
			Help: "Records of ended attempts that this process stored in the run history."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pinwheel_runs_dropped_total",
			Help: "Records of ended attempts that are missing in the run history, by reason: queue (JetStream is slower than they come), rate (the owner makes more than 16 MiB a second) or store (JetStream did not acknowledge them)."},
			[]string{"reason"}),
	}
	r.share, r.keeps = cfg.Rule.Share()
	r.queue = perowner.NewQueue(perowner.Bounds{Most: waiting, MostBytes: waitingBytes, Workers: 1, PerOwner: 1}, r.store)
	for _, reason := range []string{droppedQueue, droppedRate, droppedStore} {
		r.dropped.WithLabelValues(reason)
	}
	for _, c := range []prometheus.Collector{r.recorded, r.dropped} {
		if err := parts.Metrics.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Log takes a log line of a handler. It keeps it until the attempt ends. Any goroutine may call it, and it does not
// wait.
func (r *Recorder) Log(l *events.LogLine) {
	if r == nil || l.EventID == "" || l.Version == "" {
		return
	}
	if _, keeps := r.rule(l.Owner); keeps {
		r.lines.add(l)
	}
}

// rule returns which share of an owner's successes is kept, and whether anything is.
func (r *Recorder) rule(owner string) (share float64, keeps bool) {
	if p := r.parts.Policy(owner); p.Runs != "" {
		return p.Runs.Share()
	}
	return r.share, r.keeps
}

// Ended implements lifecycle.Observer.
func (r *Recorder) Ended(report *lifecycle.Report) {
	a, end := report.Attempt, report.End
	if a.Event == nil || a.Worker == nil || end.NotRun() {
		return
	}
	share, keeps := r.rule(a.Event.Owner)
	if !keeps {
		return
	}
	var now time.Time
	if a.Batch == nil {
		r.ended(report, a.Event, a.Number, end, share, &now)
		return
	}
	for i, e := range a.Batch {
		one, _ := end.Of(i)
		r.ended(report, e, max(1, e.Attempt), &one, share, &now)
	}
}

// ended records how an event of an attempt ended, if it is to be kept: what did not succeed, successes after that, and
// a share of the others. now is the time, once it was needed.
func (r *Recorder) ended(report *lifecycle.Report, e *lifecycle.Delivery, attempt int, end *lifecycle.End,
	share float64, now *time.Time) {
	ok := end.Failure == nil && end.Broken == nil && !end.Interrupted && !end.Retry
	list, lost := r.lines.take(e, attempt)
	if ok && attempt <= 1 && share < 1 && (share == 0 || !tail.Sampled(e.ID, share)) {
		return
	}
	if now.IsZero() {
		*now = time.Now()
	}
	rec := of(report, e, attempt, end, *now)
	rec.Lines, rec.LinesLost = list, lost
	r.push(rec, *now)
}

// Cancelled implements lifecycle.Observer: it records an event that was cancelled while it waited. No version ran it.
func (r *Recorder) Cancelled(e *lifecycle.Delivery) {
	if _, keeps := r.rule(e.Owner); keeps {
		now := time.Now()
		r.push(ofCancelled(e, now), now)
	}
}

// push has a record stored, unless its owner has too many.
func (r *Recorder) push(rec *Record, now time.Time) {
	rec.Node = r.cfg.Node
	size := rec.size()
	switch {
	case r.rates.Left(rec.Owner, now) < 0:
		r.dropped.WithLabelValues(droppedRate).Inc()
	case !r.queue.Push(rec.Owner, size, rec):
		r.dropped.WithLabelValues(droppedQueue).Inc()
	default:
		r.rates.Charge(rec.Owner, size, now)
	}
}

// Run stores the records of incomplete batches, and forgets lines of attempts that have not ended in long, until ctx is
// done. Then it stores all that wait. Nothing is recorded afterwards.
func (r *Recorder) Run(ctx context.Context) {
	if r == nil {
		return
	}
	flush, sweep := time.NewTicker(linger), time.NewTicker(sweepEvery)
	defer flush.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			r.queue.Close()
			r.flush()
			return
		case <-flush.C:
			r.flush()
		case now := <-sweep.C:
			r.lines.sweep(now)
		}
	}
}

// store adds a record to the batch. It is called by the goroutine of the queue, one record at a time.
func (r *Recorder) store(rec *Record) {
	m, err := r.message(rec)
	if err != nil {
		r.dropped.WithLabelValues(droppedStore).Inc()
		return
	}
	r.mu.Lock()
	r.batch, r.bytes = append(r.batch, m), r.bytes+len(m.Subject)+len(m.Data)
	full := len(r.batch) >= batchRecords || r.bytes >= batchBytes
	r.mu.Unlock()
	if full {
		r.flush()
	}
}

// message encodes a record. One that is too large for NATS loses its lines.
func (r *Recorder) message(rec *Record) (*nats.Msg, error) {
	data, err := json.Marshal(rec)
	if most := int(min(maxRecord, r.parts.NC.MaxPayload())); err == nil && len(data) > most {
		rec.LinesLost, rec.Lines = rec.LinesLost+len(rec.Lines), nil
		data, err = json.Marshal(rec)
	}
	return &nats.Msg{Subject: rec.subject(r.cfg.Prefix), Data: data}, err
}

// flush stores the batch. It waits until the last record is acknowledged: JetStream stores what comes by one connection
// in its order.
func (r *Recorder) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, bytes, batch := len(r.batch), r.bytes, r.batch
	if n == 0 {
		return
	}
	r.batch, r.bytes = r.batch[:0], 0
	err := r.publish(batch)
	clear(batch)
	if err != nil {
		r.dropped.WithLabelValues(droppedStore).Add(float64(n))
		r.log.Warn(err, "records of the run history were dropped").Str("stream", events.StreamRuns).Int("records", n).Send()
		return
	}
	r.recorded.Add(float64(n))
	if r.parts.Stored != nil {
		r.parts.Stored(bytes)
	}
}

func (r *Recorder) publish(batch []*nats.Msg) error {
	if !r.parts.NC.IsConnected() { // nothing is kept for later
		return nats.ErrConnectionReconnecting
	}
	for _, m := range batch[:len(batch)-1] {
		if err := r.parts.NC.PublishMsg(m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := r.parts.JS.PublishMsg(ctx, batch[len(batch)-1], jetstream.WithExpectStream(events.StreamRuns),
		jetstream.WithRetryAttempts(0))
	return err
}
