package cells

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/calls"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// Dispatcher is what the threads of cells ask and tell: *dispatch.Dispatcher.
type Dispatcher interface {
	isolates.Source
	// PoolEnded reports that the threads of a pool run nothing and have no context.
	PoolEnded(pool int)
}

// Config configures Pools.
type Config struct {
	// Start starts the process of a cell.
	Start func(ctx context.Context) (*Process, error)
	// ClassOf returns the class of an owner; "" = it runs in the process's own pool. It must not block.
	ClassOf func(owner string) string
	// Catalog has the policies.
	Catalog *catalog.Catalog
	// Secrets is that of isolates.Config.
	Secrets func(w *workers.Worker) (*isolates.Secrets, error)
	// Pool is the configuration of a cell's pool. Its threads are as many as those of the process's own pool.
	Pool wire.Pool
	// Authorities returns the certificates whose servers handlers may trust, PEM, when a cell starts; nil = those of the
	// cell's system.
	Authorities func() []byte
	// Calls is what answers the calls of a cell. Given and Lie are set for each cell.
	Calls calls.Config
	// Caused is called when a cell has caused its end as only code can that has broken out of V8: by what it sent, or by
	// memory that no account of V8 has. nil = not called.
	Caused func(End)
	// Most is how many cells there may be at once. If more are needed, those that rest longest end first.
	Most int
	// HeapMax is how many bytes the process's own pool and the cells may have together before cells that rest end, and
	// none starts.
	HeapMax int64
	// Confine is PINWHEEL_CELL_CONFINE, for who reads the Account. Start does what it says.
	Confine string
	// NoCgroups says why cells have no cgroups, for who reads the Account; "" = they have.
	NoCgroups string
	// Queued returns the owners that have events which wait; nil = it is not known.
	Queued func() []string
	// IdleAfter is how long a cell rests before it ends. 0 = a minute.
	IdleAfter time.Duration
	Log       zerolog.Logger
}

// Pools are the pool of a process and those of its cells. Any goroutine may call the methods.
type Pools struct {
	*isolates.Pool // of the process
	cfg            Config
	log            zerolog.Logger
	dispatch       Dispatcher
	host           isolates.Host
	metrics        *metrics
	frameRate      rate.Limit // the constant, except in tests
	endWithin      time.Duration

	mu      sync.Mutex
	classes map[string]*class
	byPool  []*class       // by number; that of the process's own pool is nil
	cells   int            // processes
	ended   isolates.Stats // totals of cells that have ended, as they were last asked
	closing bool
	left    chan struct{} // capacity 1; the process of a cell has ended
	turn    chan struct{} // capacity 1; has an element while a class looks for room
	group   sync.WaitGroup
	ends    context.Context //nolint:containedctx // is done when the process ends
	end     context.CancelFunc
}

// New makes the pools of a process. own is its own pool.
func New(own *isolates.Pool, cfg Config, d Dispatcher, host isolates.Host, reg prometheus.Registerer) (*Pools, error) {
	if cfg.IdleAfter == 0 {
		cfg.IdleAfter = time.Minute
	}
	p := &Pools{
		Pool: own, cfg: cfg, log: cfg.Log, dispatch: d, host: host, endWithin: endWithin, frameRate: frameRate,
		classes: map[string]*class{}, byPool: []*class{nil}, left: make(chan struct{}, 1),
		turn: make(chan struct{}, 1),
	}
	p.ends, p.end = context.WithCancel(context.Background())
	p.metrics = newMetrics(p)
	return p, errors.Join(reg.Register(p.metrics), reg.Register(isolates.Collector{Stats: p.Stats}))
}

// PoolOf is dispatch.Config.PoolOf.
func (p *Pools) PoolOf(owner string) int {
	name := p.cfg.ClassOf(owner)
	if name == "" {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.classes[name]
	if c == nil {
		c = newClass(p, name, len(p.byPool))
		p.classes[name] = c
		p.byPool = append(p.byPool, c)
	}
	return c.pool
}

// of returns the class that a thread of the dispatcher belongs to; nil = the process's own pool.
func (p *Pools) of(thread int) (c *class, index int) {
	pool, index := dispatch.PoolOfThread(thread)
	if pool == 0 {
		return nil, index
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byPool[pool], index
}

// Wake implements dispatch.Threads. For a thread of a cell it asks the dispatcher at once: the cell has said that the
// thread has room.
func (p *Pools) Wake(thread int) {
	c, index := p.of(thread)
	if c == nil {
		p.Pool.Wake(index)
		return
	}
	c.wake(index)
}

// CloseContexts implements dispatch.Threads.
func (p *Pools) CloseContexts(thread int, w *workers.Worker) {
	c, index := p.of(thread)
	if c == nil {
		p.Pool.CloseContexts(index, w)
		return
	}
	if live := c.live(); live != nil {
		live.closeContexts(index, w)
	}
}

// Cancel implements dispatch.Threads.
func (p *Pools) Cancel(e *lifecycle.Delivery) {
	p.Pool.Cancel(e)
	p.each(func(c *cell) { c.cancel(e) })
}

// each calls f with each cell that runs.
func (p *Pools) each(f func(*cell)) {
	p.mu.Lock()
	all := append([]*class(nil), p.byPool...)
	p.mu.Unlock()
	for _, c := range all {
		if c != nil {
			if live := c.live(); live != nil {
				f(live)
			}
		}
	}
}

// SetPolicy is isolates.Pool.SetPolicy for all pools. An owner that changes its class leaves nothing in its old cell.
func (p *Pools) SetPolicy(owner string, policy workers.Policy) {
	p.Pool.SetPolicy(owner, policy)
	stays := p.cfg.ClassOf(owner)
	p.each(func(c *cell) { c.setPolicy(owner, policy, c.class.name == stays) })
}

// Retire is isolates.Pool.Retire for all pools.
func (p *Pools) Retire(owner, name string) {
	p.Pool.Retire(owner, name)
	p.each(func(c *cell) { c.tell(wire.Retire, owner, name) })
}

// Renew is isolates.Pool.Renew for all pools.
func (p *Pools) Renew(owner, name string) {
	p.Pool.Renew(owner, name)
	p.each(func(c *cell) { c.renew(owner, name) })
}

// Reset is isolates.Reset for all pools.
func (p *Pools) Reset(owner, name string) {
	isolates.Reset(p.Pool, owner, name)
	p.each(func(c *cell) { c.tell(wire.Reset, owner, name) })
}

// Close ends all cells, and the process's own pool. Unfinished runs are reported as interrupted.
func (p *Pools) Close() {
	p.closeCells()
	p.Pool.Close()
}

// closeCells ends all cells.
func (p *Pools) closeCells() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.end()
	p.group.Wait()
}
