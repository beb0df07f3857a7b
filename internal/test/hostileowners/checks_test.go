package hostileowners

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// hasChild reports whether the process has started another one that runs.
func hasChild(p *fleettest.Process) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(text), ") ") // the name of a process is in parentheses
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(p.PID()) {
			return true
		}
	}
	return false
}

// ticks is the CPU time that the process has used, in hundredths of a second.
func ticks(t *testing.T, p *fleettest.Process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from the third on
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return user + system
}

// moduleChecks has acme deploy modules that V8 does not stop loading, without storing them. beta's worker answers
// meanwhile, and the process stays.
func moduleChecks(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", `export default { task: event => event.payload }`, "")
	f.deploy("acme", "mine", `export default { task: event => event.payload }`, "")
	p, acme, beta := f.processes[0], f.as("acme"), f.as("beta")
	bundles, err := client.New(acme)
	require.NoError(t, err)
	defer func() { _ = bundles.Close() }()
	refused := 0
	for i := range 6 {
		code := fmt.Sprintf(`[].indexOf.call({ length: 2 ** 53 - 1 }, 1); export default { task() {} } // %d`, i)
		b, err := bundles.Store(t.Context(), "acme", strings.NewReader(code))
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(code))
		body, err := json.Marshal(control.DeployVersion{
			WorkerName: control.WorkerName{Worker: "hostile"}, File: "w.js", DryRun: true,
			Bundle: control.UploadedBundle{ID: b.ID, Parts: b.Parts, Code: len(code), SHA256: hex.EncodeToString(sum[:])},
		})
		require.NoError(t, err)
		var m *nats.Msg
		done := make(chan struct{})
		go func() {
			m, err = acme.Request("pinwheel.owner.acme.versions.deploy", body, patience)
			close(done)
		}()
		if i == 0 && !f.unguarded {
			until(t, "the module has a process of its own", func() bool { return hasChild(p) })
		}
		<-done
		if err != nil && !p.Alive() {
			return "the process has ended"
		}
		require.NoError(t, err)
		require.NotEmpty(t, m.Header.Get(micro.ErrorCodeHeader), "it does not load")
		if m.Header.Get(micro.ErrorCodeHeader) == "429" {
			refused++
		}
		if r := call(t, beta, events.Task, "beta", "echo", []byte("1")); r.Failure != nil {
			return fmt.Sprintf("a call of beta's: %v", r.Failure)
		}
		if status, text, err := p.TryGet("/healthz"); err != nil || status != 200 {
			return fmt.Sprintf("/healthz after %d deploys: %v %s", i+1, err, text)
		}
		if f.unguarded {
			before := ticks(t, p)
			until(t, "the module runs on in the process of the fleet", func() bool { return ticks(t, p) > before+300 })
			return "a module that was only checked runs on in the process of the fleet"
		}
	}
	until(t, "no module has a process any more", func() bool { return !hasChild(p) })
	require.Equal(t, 4, refused, "all but the first two")
	require.Equal(t, 7, data[int](t, call(t, acme, events.Task, "acme", "mine", []byte("7"))), "what acme has runs on")
	return ""
}
