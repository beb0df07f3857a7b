package bindings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Config configures Bindings.
type Config struct {
	Replicas int // of the owners' streams
	// KVBytes and CacheBytes are what the streams of an owner may have if its policy says nothing.
	KVBytes, CacheBytes int64
	OnlyMissing         bool // streams that exist stay as they are
	// Catalog has the policies, which say what owners may store and call. nil: there are none.
	Catalog *catalog.Catalog
	// Prefix is that of the fleet's subjects. ReplyPrefixes begin the subjects to which the fleet publishes replies;
	// {owner} in them stands for an owner. Handlers publish to neither.
	Prefix        string
	ReplyPrefixes []string
	Log           zerolog.Logger
}

// backend is what the kinds of bindings have in common.
type backend struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	policy func(owner string) workers.Policy
	// reservations is told when JetStream has no room; nil = nobody is.
	reservations *reservations
}

// kind is a kind of binding: its methods by name, nil for a name that is none, and what begins the messages of their
// errors, before the method.
type kind struct {
	method func(name string) method
	noun   string
}

// Bindings carries out calls. Any goroutine may use it.
type Bindings struct {
	kinds   map[workers.BindingKind]kind
	catalog *catalog.Catalog
	kv      *kv
	cache   *cache
	objects *objects
	calls   *prometheus.CounterVec

	mu     sync.Mutex
	owners map[string]*owner // those that called
}

// owner is what Bindings knows of an owner.
type owner struct {
	calls *rate.Limiter // in this process
	lists chan struct{} // a place for each list under way
}

// listsAtOnce is how many lists of an owner a process makes at once: each makes a consumer in JetStream.
const listsAtOnce = 2

// New returns Bindings that use nc.
func New(nc *nats.Conn, js jetstream.JetStream, cfg Config, reg prometheus.Registerer) (*Bindings, error) {
	if cfg.Catalog == nil {
		cfg.Catalog = &catalog.Catalog{}
	}
	b := &Bindings{catalog: cfg.Catalog, owners: map[string]*owner{}}
	policy := func(owner string) workers.Policy { return *cfg.Catalog.Policy(owner) }
	of := backend{nc, js, cfg, policy, newReservations()}
	b.kv, b.cache = newKV(of), newCache(of)
	b.objects = newObjects(of, b.kv.lists)
	b.kinds = map[workers.BindingKind]kind{
		workers.BindingKV:      {b.kv.method, "KV"},
		workers.BindingCache:   {b.cache.method, "Cache"},
		workers.BindingObjects: {b.objects.method, ""},
		workers.BindingNATS:    {(&natsCalls{of}).method, "NATS"},
	}
	b.calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_binding_calls_total", Help: "Calls of methods of bindings, by kind of binding, method, and result (ok or failed).",
	}, []string{"kind", "method", "result"})
	return b, errors.Join(reg.Register(b.calls), reg.Register(of.reservations.refused))
}

// callsOf is how many calls an owner may make in a second in this process. As many may come at once.
func callsOf(p *workers.Policy) int {
	if p.BindingCalls == 0 {
		return workers.DefaultBindingCalls
	}
	return p.BindingCalls
}

// limits are those that calls of an owner have in this process, by its policy of now.
func (b *Bindings) limits(name string) (calls *rate.Limiter, lists chan struct{}) {
	most := callsOf(b.catalog.Policy(name))
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.owners[name]
	if o == nil {
		o = &owner{calls: rate.NewLimiter(rate.Limit(most), most), lists: make(chan struct{}, listsAtOnce)}
		b.owners[name] = o
	}
	if o.calls.Burst() != most {
		o.calls.SetLimit(rate.Limit(most))
		o.calls.SetBurst(most)
	}
	return o.calls, o.lists
}

// costs are how many calls some methods count as, by what they cost nats-server.
var costs = map[string]int{"list": 20, "delete": 5}

// admitted carries out a call within the limits of its owner.
func (b *Bindings) admitted(ctx context.Context, m method, c *lifecycle.Call) (lifecycle.Answer, error) {
	calls, lists := b.limits(c.Owner)
	cost := max(1, costs[c.Method])
	if c.Method == "getMany" {
		cost = len(c.Texts)
	}
	if c.Method == "delete" && c.Binding.Kind == workers.BindingObjects {
		cost *= len(c.Texts)
	}
	if !calls.AllowN(time.Now(), min(max(1, cost), calls.Burst())) {
		return lifecycle.Answer{}, fmt.Errorf("429 the owner's bindings may be called %v times in a second", calls.Limit())
	}
	if c.Method == "list" {
		select {
		case lists <- struct{}{}:
			defer func() { <-lists }()
		case <-ctx.Done():
			return lifecycle.Answer{}, ctx.Err()
		}
	}
	return m(ctx, c)
}

// method carries out calls of one method.
type method func(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error)

// Call carries out a call. The error is a text for the author of the handler. It blocks until NATS has answered.
func (b *Bindings) Call(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	k := b.kinds[c.Binding.Kind]
	var m method
	if k.method != nil {
		m = k.method(c.Method)
	}
	if m == nil {
		return lifecycle.Answer{}, fmt.Errorf("a binding of kind %q has no method %q", c.Binding.Kind, c.Method)
	}
	answer, err := b.admitted(ctx, m, c)
	result := "ok"
	if err != nil {
		result = "failed"
		if k.noun == "" {
			err = fmt.Errorf("%s: %w", c.Method, err)
		} else {
			err = fmt.Errorf("%s %s failed: %w", k.noun, cmp.Or(verbs[c.Method], c.Method), err)
		}
	}
	b.calls.WithLabelValues(string(c.Binding.Kind), c.Method, result).Inc()
	return answer, err
}

// verbs name methods in the messages of errors, as at Cloudflare.
var verbs = map[string]string{"get": "GET", "getMany": "GET_BULK", "put": "PUT", "delete": "DELETE", "list": "GET",
	"match": "GET"}

// inWords is an error of NATS for the author of a handler. policy is the field of the owner's policy that bounds the
// stream. gone says that the stream does not answer: it may have been deleted.
func inWords(err error, policy string) (gone bool, worded error) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound):
		return true, errors.New("503 the owner's data is not available now")
	case resources.IsFull(err):
		return false, fmt.Errorf("413 the owner's data would have more bytes than the owner may store (policy %s)", policy)
	case errors.As(err, &api) && api.ErrorCode == codeNoStorage:
		return false, errors.New("503 nats-server has no room left to reserve for the owner's data: an operator must give JetStream more, or owners less")
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout):
		return false, errors.New("504 the owner's data did not answer in time")
	}
	return false, fmt.Errorf("500 %w", err)
}

// codeNoStorage is JetStream's error for a stream whose size it cannot reserve.
const codeNoStorage = 10047
