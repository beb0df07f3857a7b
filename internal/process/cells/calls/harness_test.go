package calls

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 5 * time.Minute

// pair returns the two ends of a connection, as a cell and its broker have them.
func pair(t testing.TB) (cell, broker net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "calls")
		ends[i], err = net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return ends[0], ends[1]
}

// cell is a cell and its broker in one process. It is the Given of the Server, and what carries out the calls.
type cell struct {
	t      testing.TB
	client *Client
	server *Server
	raw    net.Conn // the cell's end

	mu       sync.Mutex
	workers  map[string]*workers.Worker // by name and version
	attempts map[uint64]*lifecycle.Attempt
	numbers  map[*lifecycle.Attempt]uint64
	last     uint64
	sockets  map[uint64]events.SocketConn
	sent     []bindings.Message
	lies     []error
	lied     chan struct{} // closed after the first

	call    func(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error)
	enqueue func(ctx context.Context, owner, worker string, tasks []bindings.Message) error
	files   func(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool)
	calling atomic.Int64
}

// newCell starts a cell. Its egress reaches 127.0.0.1, and no other address of this machine.
func newCell(t testing.TB, services func(*cell) bindings.Services) *cell {
	t.Helper()
	c := &cell{t: t, workers: map[string]*workers.Worker{}, attempts: map[uint64]*lifecycle.Attempt{},
		numbers: map[*lifecycle.Attempt]uint64{}, sockets: map[uint64]events.SocketConn{}, lied: make(chan struct{})}
	cfg := Config{Given: c, Host: host{c}, Files: files{c}, Egress: guarded(), Lie: c.lie}
	if services != nil {
		cfg.Services = services(c)
	}
	c.server = NewServer(cfg)
	in, out := pair(t)
	c.raw = in
	ended := make(chan error, 1)
	go func() { ended <- c.server.Serve(context.Background(), out) }()
	var err error
	c.client, err = NewClient(t.Context(), in, c.number)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.client.Close()
		require.NoError(t, <-ended)
		require.True(t, c.server.arguments.places.TryAcquire(argumentBytes), "all arguments are given back")
		require.True(t, c.server.answers.places.TryAcquire(answerBytes), "all answers are given back")
		require.True(t, c.server.events.places.TryAcquire(eventBytes), "all events are given back")
		require.True(t, c.server.messages.places.TryAcquire(messageBytes), "all messages are given back")
	})
	return c
}

func guarded() *egress.Client {
	return egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)
}

func (c *cell) lie(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lies = append(c.lies, err); len(c.lies) == 1 {
		close(c.lied)
	}
}

// give gives the cell a worker.
func (c *cell) give(w *workers.Worker) *workers.Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[w.Name+" "+w.Version] = w
	return w
}

// start gives the cell an attempt. in the cell it is what is returned.
func (c *cell) start(a *lifecycle.Attempt) *lifecycle.Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.attempts[c.last] = a
	inside := *a
	c.numbers[&inside] = c.last
	return &inside
}

// end ends an attempt.
func (c *cell) end(id uint64) {
	c.mu.Lock()
	c.attempts[id] = nil
	c.mu.Unlock()
	c.server.Over(id)
}

func (c *cell) number(a *lifecycle.Attempt) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.numbers[a]
}

func (c *cell) Owner(owner string) bool { return owner == "acme" }

func (c *cell) Worker(owner, name, version string) *workers.Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner != "acme" {
		return nil
	}
	return c.workers[name+" "+version]
}

func (c *cell) Attempt(id uint64) (*lifecycle.Attempt, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempts[id], id != 0 && id <= c.last
}

func (c *cell) Socket(id uint64) events.SocketConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.sockets[id]
	delete(c.sockets, id)
	return conn
}

type host struct{ c *cell }

func (h host) Call(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	h.c.calling.Add(1)
	defer h.c.calling.Add(-1)
	return h.c.call(ctx, c)
}

func (h host) Enqueue(ctx context.Context, owner, worker string, tasks []bindings.Message) error {
	return h.c.enqueue(ctx, owner, worker, tasks)
}

type files struct{ c *cell }

func (f files) ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool) {
	f.c.files(rw, r, w, follows)
}

// greeter is a worker with all kinds of bindings.
func greeter() *workers.Worker {
	w := &workers.Worker{Owner: "acme", Name: "greeter", Version: "1"}
	w.KV = map[string]string{"KV": "space"}
	w.Queues = map[string]string{"Q": "jobs"}
	w.Services = map[string]string{"OTHER": "other", "NAMED": "other#Named"}
	w.Assets = &workers.Assets{Binding: "ASSETS"}
	return w
}

func direct(w *workers.Worker, parts *events.Parts) *lifecycle.Attempt {
	return &lifecycle.Attempt{Worker: w, Number: 1, Event: &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch,
		Owner: w.Owner, Worker: w.Name, ID: "e", Parts: parts}}}
}

// kv is a call of a KV binding by a run.
func kv(from *lifecycle.Attempt, method string, body []byte, texts ...string) *lifecycle.Call {
	return &lifecycle.Call{Owner: "acme", From: from, Binding: workers.Binding{Kind: workers.BindingKV, Name: "KV"},
		Method: method, Texts: texts, Body: body, Wrote: &atomic.Bool{}, Hold: func(int) error { return nil }}
}

// post sends a request as a hostile cell does, and returns the status of its answer; 0 = there was none.
func (c *cell) post(path string, body io.Reader) int {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://broker"+path, body)
	require.NoError(c.t, err)
	resp, err := c.client.conn.RoundTrip(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}
