package hostileowners

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// eventIDs has acme, as a client of beta's worker, look at the id of an event, and store events of its own under the
// ids that would follow if ids were counted. JetStream then drops beta's events with these ids.
func eventIDs(t *testing.T, f *fleet) (harm string) {
	const ahead, requests = 200, 50
	f.deploy("beta", "w", `export default { async fetch(r) { console.log(await r.text()) } }`, `{"http": {"delivery": "accepted"}}`)
	lines, err := f.nc.SubscribeSync("pinwheel.logs.beta.w")
	require.NoError(t, err)
	require.NoError(t, f.nc.Flush())
	id := acceptedID(t, f.processes[0].HTTP)
	counted := regexp.MustCompile(`[0-9]*$`).FindString(id)
	n, _ := strconv.ParseUint(counted, 10, 64) // 0 when there is no number
	acme := f.as("acme")
	for i := range uint64(ahead) {
		m := nats.NewMsg(subjects.Event(events.Task, "acme", "none"))
		m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("beta:%s%d", id[:len(id)-len(counted)], n+1+i))
		_, err := acme.RequestMsg(m, patience)
		require.NoError(t, err)
	}
	before := f.lastStored()
	for range requests {
		acceptedID(t, f.processes[0].HTTP)
	}
	if n := f.lastStored() - before; n < requests {
		return fmt.Sprintf("of %d requests to beta that were answered with 202, %d are stored", requests, n)
	}
	for ran := map[string]bool{}; len(ran) < requests+1; { // and the first
		m, err := lines.NextMsg(patience)
		require.NoError(t, err)
		var line events.LogLine
		require.NoError(t, json.Unmarshal(m.Data, &line))
		ran[line.EventID] = true
	}
	return ""
}

// acceptedID sends a request to beta's worker, and returns the id of its event.
func acceptedID(t *testing.T, addr string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, http.NoBody)
	require.NoError(t, err)
	r.Host = betaHost
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusAccepted, answer.StatusCode)
	return answer.Header.Get("Event-Id")
}

// lastStored is the sequence of the last event of the fleet.
func (f *fleet) lastStored() uint64 {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), events.StreamEvents)
	require.NoError(f.t, err)
	return s.CachedInfo().State.LastSeq
}
