package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// The name of this file is the last one: Go resumes parallel tests from the last to the first, and this one waits for a
// lease that nobody renews.

// counting is a server that counts the requests that are under way at once. Each process of the test may reach it at
// another address.
type counting struct {
	*httptest.Server
	port string

	mu      sync.Mutex
	running int
	most    int
	hosts   map[string]int // requests by the address that was asked
	hold    chan string    // not nil: a request says its address here, and lasts as long as its process
}

func startCounting(t *testing.T) *counting {
	t.Helper()
	c := &counting{hosts: map[string]int{}}
	c.Server = httptest.NewUnstartedServer(c)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	c.Listener = l
	c.Start()
	t.Cleanup(c.Close)
	_, c.port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return c
}

func (c *counting) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	c.hosts[host]++
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		hold <- host
		<-r.Context().Done()
	} else {
		<-time.After(5 * time.Millisecond) // what the event waits for
	}
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
}

func (c *counting) set(hold chan string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = hold
}

// Three processes have events of a worker that runs one at a time, and each has its turn. The one that has the lease is
// killed: the others go on when the lease is over. Never do two events run at once.
func TestOneEventOfAWorkerAtATime(t *testing.T) {
	t.Parallel()
	srv, server := natstest.Start(t), startCounting(t)
	h := &testFleet{t: t}
	processes := map[string]*fleettest.Process{}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		processes[host] = fleettest.Serve(t, srv.URL(), shortLease, "PINWHEEL_ALLOW_PRIVATE_ADDRESSES="+host+"/32")
	}
	h.connect(srv.URL())
	h.deploy("acme", "one", fmt.Sprintf(`export default { async task() {
		for (const host of ["127.0.0.1", "127.0.0.2", "127.0.0.3"]) {
			try { await fetch("http://" + host + ":%s/"); return host } catch {}
		}
	} };`, server.port), `{"concurrency": 1}`)
	h.deploy("acme", "free", says("free"))
	send := func(n int) (answered func()) {
		var answers []<-chan *nats.Msg
		for range n {
			answers = append(answers, h.send(events.Task, "acme/one", "{}"))
		}
		return func() {
			for _, c := range answers {
				h.reply(c)
			}
		}
	}
	answered := send(300)
	require.Contains(t, string(h.reply(h.send(events.Task, "acme/free", "{}")).Body), `"free"`,
		"other workers of the owner are not held up")
	answered()
	server.mu.Lock()
	require.Len(t, server.hosts, 3, "each process had its turn")
	server.mu.Unlock()

	hold := make(chan string)
	server.set(hold)
	answered = send(30)
	holder := <-hold
	server.set(nil)
	processes[holder].Kill()
	answered()
	server.mu.Lock()
	defer server.mu.Unlock()
	require.Equal(t, 1, server.most)
}
