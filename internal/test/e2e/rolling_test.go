package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Three processes are replaced one after the other. Each successor is ready before its predecessor is asked to end, as
// docs/guides/operate.md says. No call is refused, none is lost, and each process ends without an error.
func TestRollingUpgradeRefusesNoCall(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	// A call is refused when it is not stored within a third of the ack wait, at most 5 s.
	start := func() *fleettest.Process { return fleettest.Serve(t, srv.URL()) }
	var fleet []*fleettest.Process
	for range 3 {
		fleet = append(fleet, start())
	}
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "echo", `export default { async fetch(request) {
		await new Promise(done => setTimeout(done, 20));
		return new Response(await request.text());
	} }`)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls atomic.Int64
	for caller := range 4 {
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf("%d %d", caller, i)
				m, err := h.nc.Request("pinwheel.call.fetch.acme.echo", []byte(body), patience)
				if err != nil || string(m.Data) != body {
					t.Errorf("call %s: %v %v", body, m, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	some := func() {
		from := calls.Load()
		require.Eventually(t, func() bool { return calls.Load() >= from+40 || t.Failed() }, patience, 5*time.Millisecond)
	}
	for i, old := range fleet {
		some()
		fleet[i] = start()
		some()
		old.Signal(os.Interrupt)
		require.NoError(t, old.Wait())
	}
	some()
	stop()
	callers.Wait()
	t.Logf("%d calls, none refused", calls.Load())
}
