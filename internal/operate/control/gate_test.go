package control

import (
	"crypto/sha256"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// sized is a request of which the gate sees the size only.
type sized struct {
	micro.Request
	data []byte
}

func (sized) Subject() string { return "pinwheel.owner.acme.workers.list" }
func (s sized) Data() []byte  { return s.data }
func request(owner string, at time.Time) ownerRequest {
	return ownerRequest{Request: sized{}, owner: owner, at: at}
}

// burn uses CPU time of this thread.
func burn(d time.Duration) {
	for used := time.Duration(0); used < d; {
		used += perowner.CPU(func() { sha256.Sum256(make([]byte, 1<<20)) })
	}
}

// What the requests of an owner took of Go's time is charged to it. Another owner's requests are handled meanwhile.
func TestRequestsHaveATimeBudget(t *testing.T) {
	t.Parallel()
	handled := make(chan string, 1)
	g := newGate(func(r ownerRequest) { handled <- r.owner }, prometheus.NewRegistry())
	defer g.queue.Close()
	now := time.Now()
	g.time.Charge("acme", int((ownerTimeBurst + 3*ownerTime).Microseconds()), now)
	err, answer := g.enter(request("acme", now))
	require.True(t, answer)
	require.EqualError(t, err, "rate: requests of owner acme took more than 100ms of CPU time in a second: try again in 3s")
	require.Equal(t, http.StatusTooManyRequests, codeOf(err))
	err, _ = g.enter(request("beta", now))
	require.NoError(t, err)
	require.Equal(t, "beta", <-handled)
	err, _ = g.enter(request("acme", now.Add(4*time.Second)))
	require.NoError(t, err)
	require.Equal(t, "acme", <-handled)
}

// The time that a handler computes is charged, and not the time for which it waits.
func TestCPUTimeOfRequestsIsCharged(t *testing.T) {
	t.Parallel()
	g := newGate(func(r ownerRequest) {
		if r.owner == "acme" {
			burn(20 * time.Millisecond)
		}
	}, prometheus.NewRegistry())
	now := time.Now()
	for _, owner := range []string{"acme", "beta"} {
		err, _ := g.enter(request(owner, now))
		require.NoError(t, err)
	}
	g.queue.Close()
	left := func(owner string) float64 { return g.time.Left(owner, now) }
	all := float64(ownerTimeBurst.Microseconds())
	require.LessOrEqual(t, left("acme"), all-20_000+float64(time.Since(now).Seconds()*float64(ownerTime.Microseconds())))
	require.Greater(t, left("beta"), left("acme"))
}

// Beyond the rate a few refusals are answered, and further requests are not.
func TestRefusalsAreFew(t *testing.T) {
	t.Parallel()
	g := newGate(func(ownerRequest) {}, prometheus.NewRegistry())
	defer g.queue.Close()
	now, handled, refused, dropped := time.Now(), 0, 0, 0
	for range 10_000 {
		switch err, answer := g.enter(request("acme", now)); {
		case err == nil:
			handled++
		case answer:
			refused++
		default:
			dropped++
		}
	}
	require.LessOrEqual(t, handled, ownerBurst)
	require.Equal(t, ownerBurst, refused)
	require.Equal(t, 10_000, handled+refused+dropped)
}
