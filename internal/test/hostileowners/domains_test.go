package hostileowners

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// longDomains has Go convert the hosts of URLs that are much longer than a host can be. Their characters all differ.
// Punycode takes time that grows with the product of both, many seconds here. What JavaScript does before takes little.
func longDomains(t *testing.T, f *fleet) (harm string) {
	// The limit leaves JavaScript the time that it needs on a slow machine.
	f.deploy("acme", "url",
		`const host = Array.from({ length: 60000 }, (_, i) => String.fromCodePoint(0x4e00 + i % 20000)).join("");
		export default { task() { for (;;) URL.canParse("http://" + host + "/") } }`, `{"retries": {"maxAttempts": 1}, "limits": {"cpuMs": 500}}`)
	f.deploy("beta", "w", `export default { task: () => 1 }`, "")
	p, acme, beta := f.processes[0], f.as("acme"), f.as("beta")
	require.True(t, answered(t, beta, "w"), "before the attack")
	for range 3 {
		r := call(t, acme, events.Task, "acme", "url", []byte("null"))
		require.NotNil(t, r.Failure)
		if r.Failure.Reason != events.ReasonCPU { // an enforced limit of CPU time costs no thread
			return fmt.Sprintf("a run could not be ended by its limit: %s", r.Failure)
		}
		if !answered(t, beta, "w") {
			return "beta is not answered"
		}
	}
	if status, body := p.Get("/healthz"); status != 200 {
		return fmt.Sprintf("the process is to be replaced: %s", body)
	}
	return ""
}
