package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// controlled is the process as the package control uses it.
type controlled struct {
	process *Process
	drain   func() // makes the process drain
}

func (c controlled) Stats() any { return c.process.Stats() }

func (c controlled) Flow() control.Flow {
	r := &c.process.rooms
	figures := r.dispatch.Figures()
	d, past, pool, held := figures.Stats(), figures.Flow(), r.pool.Stats(), r.consumer.Stats()
	f := control.Flow{
		At: time.Now(), Queued: d.Queued, Running: d.Running, Held: held.Held, Waiting: held.Waiting, Isolates: pool.Cached +
			pool.Busy, Heap: pool.HeapBytes, Draining: d.Draining, Busy: c.process.scale.busy(),
		Retried: past.Retried, Failed: past.Failed, Parked: past.Parked, Wait: histogram(past.Wait),
		Duration: histogram(past.Duration),
		Owners:   []control.OwnerFlow{},
	}
	for _, one := range r.pool.Cells() {
		f.Cells, f.CellBytes = f.Cells+1, f.CellBytes+one.Bytes
	}
	for _, o := range figures.BusyOwners() {
		if len(f.Owners) == control.MaxFlowOwners {
			break
		}
		f.Owners = append(f.Owners, control.OwnerFlow{Owner: o.Owner, Queued: o.Queued, Running: o.Running,
			Parking: o.Parking})
	}
	for _, l := range figures.Limited(control.MaxFlowLimits) {
		f.Limits = append(f.Limits, control.LimitFlow(l))
	}
	f.Paused, f.PausedInAll = c.process.deployed.paused(control.MaxFlowPaused)
	f.Workers = workerFlows(figures.BusyWorkers("", "", control.MaxFlowWorkers).Workers)
	return f
}

func workerFlows(list []dispatch.WorkerStats) []control.WorkerFlow {
	flows := make([]control.WorkerFlow, len(list))
	for i, w := range list {
		flows[i] = control.WorkerFlow{
			Worker: w.Owner + "/" + w.Worker, State: string(w.State), Running: w.Running, Ended: w.Ended, Failed: w.Failed,
			Duration: w.Duration.Buckets, Last: w.Last,
		}
	}
	return flows
}

func (c controlled) WorkersFlow(owner, worker string) control.WorkersFlow {
	has := c.process.rooms.dispatch.Figures().BusyWorkers(owner, worker, control.MaxFlowWorkers)
	return control.WorkersFlow{
		At: time.Now(), OwnerFlow: control.OwnerFlow{Owner: owner, Queued: has.Queued, Running: has.Running,
			Parking: has.Parking},
		Ended: has.Ended, Failed: has.Failed, Duration: histogram(has.Duration), Workers: workerFlows(has.Workers),
	}
}

func (c controlled) Minutes(owner string) []control.Minute { return c.process.scale.minutes.Of(owner) }

func (c controlled) Held(owner, worker string) ([]control.HeldEvent, int) {
	held, all := c.process.rooms.consumer.Holding(owner, worker, control.MaxHeldEvents)
	list := make([]control.HeldEvent, len(held))
	for i, h := range held {
		list[i] = control.HeldEvent{Ref: control.HeldRef(h.Stream, h.Seq), Worker: h.Target, ID: h.ID, State: h.State,
			Began: h.Began}
	}
	return list, all
}

func (c controlled) Sources(owner, after, through string, limit int) ([]sources.Status, bool) {
	return c.process.rooms.consumer.Sources().List(owner, after, through, limit)
}

func (c controlled) Unstored() error { return c.process.rooms.consumer.Unstored() }

func histogram(h dispatch.Histogram) control.Histogram {
	return control.Histogram{Count: h.Count, Bounds: dispatch.Bounds(), Buckets: h.Buckets}
}

func (c controlled) Installed(owner, name string) workers.Installation {
	in, _ := c.process.deployed.catalog.Installed(owner, name)
	return in
}

func (c controlled) Installations() []*workers.Installation { return c.process.deployed.catalog.All() }

func (c controlled) Policies() map[string]*workers.Policy {
	return c.process.deployed.catalog.Policies()
}

func (c controlled) Policy(owner string) *workers.Policy {
	return c.process.deployed.catalog.Policy(owner)
}

func (c controlled) Outcomes(owner, name string) (rollout int, outcomes workers.Outcomes) {
	return c.process.rooms.dispatch.Outcomes(owner, name)
}

func (c controlled) Members() (self control.Member, all []control.Member, left []string) {
	m := c.process.members
	return m.self, m.known(), m.gone()
}

func (c controlled) Tail(owner string, r tail.Request) error {
	return c.process.onlookers.tails.Renew(owner, r)
}

func (c controlled) AdmitLetter(owner string, size int) *events.Failure {
	return c.process.rooms.consumer.AdmitLetter(owner, size)
}

func (c controlled) Reset(ctx context.Context, owner, worker string) (done, missing []control.Member, err error) {
	return resets{c.process}.all(ctx, owner, worker)
}

func (c controlled) Drain() { c.drain() }

// openControl answers control requests for this process. drain must make the process drain.
func (p *Process) openControl(ctx context.Context, drain func()) (*control.Server, error) {
	return control.Open(ctx, p.link.nc, control.Config{
		Prefix: p.cfg.Prefix, Node: nodeName(), Build: config.Version(), Token: p.cfg.ControlToken,
		ByPermissions: p.cfg.Control == config.ControlByPermissions,
		ReplyPrefixes: p.cfg.ReplyPrefixes, AllowPrivateAddresses: p.cfg.AllowPrivateAddresses,
		Compilers: workers.Compilers(p.cfg.Compilers), Cell: workers.Cell(p.cfg.Cell),
		DrainTimeout: p.cfg.DrainTimeout, Process: controlled{p, drain}, Log: p.log, Metrics: p.registry,
		Workers: p.deployed.store, Policies: p.policies.bucket, Secrets: p.secrets.bucket, Audit: p.audit,
		Queue:    canceller{p}.fleet(),
		Bindings: p.rooms.host.Bindings, Identities: p.secrets.values.ids, Sources: p.link.sources,
	})
}

// canceller takes events out of the queue, in this process and in all of the fleet.
type canceller struct{ *Process }

func (p canceller) fleet() *cancels.Fleet {
	return &cancels.Fleet{NC: p.link.nc, Prefix: p.cfg.Prefix, ID: p.members.self.ID, Process: p.rooms.consumer,
		Known: func() (ids []string) {
			for _, m := range p.members.known() {
				ids = append(ids, m.ID)
			}
			return ids
		}, Log: p.log}
}

// resetWait is how long a reset waits for the processes of the fleet. Each answers at once: it does not wait for runs.
const resetWait = 2 * time.Second

// resets end the contexts of a worker in all processes. Like bans, they are what processes tell each other.
type resets struct{ *Process }

func (r resets) subject() string { return r.cfg.Prefix + ".control.resets" }

// hear ends contexts when another process, or this one, says so. It runs until ctx is done.
func (r resets) hear(ctx context.Context) {
	sub, err := r.link.nc.Subscribe(r.subject(), func(m *nats.Msg) {
		var name control.WorkerName
		if json.Unmarshal(m.Data, &name) != nil {
			return
		}
		owner, worker, err := events.ParseTarget(name.Worker)
		if err != nil {
			return
		}
		r.rooms.pool.Reset(owner, worker)
		r.log.Debug().Str("owner", owner).Str("worker", worker).Msg("worker is reset: its contexts end")
		if self, err := json.Marshal(r.members.self); err == nil && m.Reply != "" {
			_ = m.Respond(self) // not connected: who asked counts this process as missing
		}
	})
	if err != nil {
		r.log.Warn().Err(err).Msg("resets of workers cannot be received")
		return
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
}

// all has all processes end the contexts of a worker. It returns those that have, and the known ones that did not
// answer.
func (r resets) all(ctx context.Context, owner, worker string) (done, missing []control.Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, resetWait)
	defer cancel()
	inbox := r.link.nc.NewInbox()
	answers, err := r.link.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	text, err := json.Marshal(control.WorkerName{Worker: owner + "/" + worker})
	if err != nil {
		return nil, nil, err
	}
	awaited := map[string]control.Member{}
	for _, m := range r.members.known() {
		awaited[m.ID] = m
	}
	if err := r.link.nc.PublishRequest(r.subject(), inbox, text); err != nil {
		return nil, nil, err
	}
	for len(awaited) > 0 {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) {
			return done, nil, err
		}
		if err != nil {
			break
		}
		var one control.Member
		if json.Unmarshal(m.Data, &one) == nil && one.ID != "" {
			delete(awaited, one.ID)
			done = append(done, one)
		}
	}
	for _, m := range awaited {
		missing = append(missing, m)
	}
	return done, missing, nil
}
