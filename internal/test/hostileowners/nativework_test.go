package hostileowners

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// nativeWork has acme's worker call methods of another one that pass their CPU time in work that V8 does not interrupt,
// and that ends. The caller gets an error each time, and nobody is refused.
func nativeWork(t *testing.T, f *fleet) (harm string) {
	f.deploy("acme", "callee", `import { WorkerEntrypoint } from "cloudflare:workers";
		export default class extends WorkerEntrypoint {
			long() { return "x".repeat(8 << 20) }
			parse() { return JSON.parse("[" + "[1.5],".repeat(1e6) + "1]").length }
			search() { return [].indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 1.2e6) }
			twice() { return 2 }
		}`, `{"limits": {"cpuMs": 20}}`)
	f.deploy("acme", "caller", `export default { async task(event, env) {
		try { const r = await env.CALLEE[event.payload](); return r.length ?? r } catch (e) { return e instanceof Error ? "" + e : "no error" }
	} }`, `{"limits": {"cpuMs": 5000}, "services": {"CALLEE": "callee"}}`)
	acme := f.as("acme")
	for round := range 3 {
		for _, method := range []string{"long", "parse", "search", "twice"} {
			r := call(t, acme, events.Task, "acme", "caller", fmt.Appendf(nil, "%q", method))
			if r.Failure != nil {
				return fmt.Sprintf("round %d: the caller of %s has ended: %v", round, method, r.Failure)
			}
			got := string(data[json.RawMessage](t, r))
			failed := strings.Contains(got, "CPU time limit of 20ms (limits.cpuMs)")
			switch {
			case method == "twice" && got != "2", method == "search" && !failed, strings.Contains(got, "refused"):
				return fmt.Sprintf("round %d: %s came to %s", round, method, got)
			case method == "long" && got != "8388608" && !failed, method == "parse" && got != "1000001" && !failed:
				return fmt.Sprintf("round %d: %s came to %s", round, method, got)
			}
		}
	}
	require.Zero(t, f.processes[0].Metric("pinwheel_dispatch_bans"))
	return ""
}
