package console_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The figures of the last hour are those of the fleet, and on the page of an owner those of its workers.
func TestLastHour(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { task(event) { if (event.payload) throw new Error("no"); } }`)
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Contains(t, p.page("/"), "No whole minute is over")
	lines := regexp.MustCompile(`aria-label="p99 of runs of the last 59 min: [^"]*"`)
	for _, path := range []string{"/", "/owners/acme"} {
		require.Eventually(t, func() bool {
			f.Pinwheel("send", "task", "acme/w", "--data", "0")
			return lines.MatchString(p.page(path))
		}, 4*patience, time.Second, path)
	}
	require.Contains(t, p.page("/owners/other"), `edge">0 – 0/min</span>`)
}
