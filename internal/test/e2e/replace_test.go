package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A process that has lost too many threads to several owners is replaced, and no call of another owner fails. The next
// process knows which workers to refuse.
func TestProcessThatLostItsThreadsIsReplacedUnnoticed(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := supervise(t, "PINWHEEL_NATS_URL="+srv.URL(), "PINWHEEL_PROCESSES=1", "PINWHEEL_THREADS=2",
		"PINWHEEL_BACKGROUND_THREADS=0", "PINWHEEL_CELL=shared",
		"PINWHEEL_ACK_WAIT=30s") // a call is refused when it is not stored within a third of this, at most 5 s
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("good", "echo", `export default { fetch: async r => new Response(await r.text()) }`)
	owners := []string{"o1", "o2", "o3", "o4"}
	for _, o := range owners {
		h.deploy(o, "w", `export default { task: () => [].indexOf.call({ length: 2 ** 53 - 1 }, 1) }`, `{"limits": {"cpuMs": 20}}`)
	}
	stop := h.keepFlowing("good/echo")
	old := s.pid(0)
	// All at once: a thread is lost after 5 s of CPU time, and each lost one goes on to take that from the others.
	var replies []<-chan *nats.Msg
	for _, o := range owners {
		replies = append(replies, h.send(events.Task, o+"/w", "{}"))
	}
	for _, reply := range replies {
		r := h.replyWithin(reply, 5*patience)
		require.Equal(t, events.ReasonCrash, r.Failure.Reason)
		require.Contains(t, r.Failure.Message, "it cost the process a thread")
	}
	require.Eventually(t, func() bool {
		code, _ := s.Get("/readyz")
		require.Equal(t, 200, code)
		pid := s.pid(0)
		return pid != 0 && pid != old
	}, patience, 50*time.Millisecond)
	s.gone(old)
	// A ban lasts a minute. On a busy machine the first may be over before the last thread is lost.
	refused := 0
	for _, o := range owners {
		r := h.replyWithin(h.send(events.Task, o+"/w", "{}"), 5*patience)
		if strings.Contains(r.Failure.Message, fmt.Sprintf("worker %s/w has cost processes threads", o)) {
			refused++
		}
	}
	require.Positive(t, refused, "the process that came last knows whom to refuse")
	stop()
	code, _ := s.Get("/healthz")
	require.Equal(t, 200, code)
	require.True(t, slices.ContainsFunc(s.Lines(), func(l map[string]any) bool {
		return l["message"] == "process asks to be replaced; another is started beside it"
	}))
}
