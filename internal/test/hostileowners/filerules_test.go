package hostileowners

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fileRules has acme deploy rules whose headers and targets name what a request chooses hundreds of times, or, if that
// is refused, as often as is allowed. Then clients of acme ask for long paths. beta's worker answers meanwhile, and a
// request costs the process little.
func fileRules(t *testing.T, f *fleet) (harm string) {
	const placeholders, paths, headers, requests, most = 600, 100, 5, 3, 15 // most: hundredths of a second for a request
	f.deploy("beta", "w", `export default { fetch: () => new Response("ok") }`, "")
	p, acme := f.processes[0], site{t, f.as("acme"), "acme"}
	refused := acme.deploy("w", ruleList(placeholders, paths, headers))
	if !f.unguarded {
		require.Contains(t, refused, "more than 16 placeholders")
		refused = acme.deploy("w", ruleList(16, paths, headers))
	}
	require.Empty(t, refused)
	long := "/" + strings.Repeat("x", 4000)
	until(t, "acme's worker answers", func() bool { return status(t, p, acmeHost, "/page.png") == http.StatusOK })
	until(t, "beta's worker answers", func() bool { return status(t, p, betaHost, "/") == http.StatusOK })
	before := ticks(t, p)
	var clients sync.WaitGroup
	for range requests {
		clients.Go(func() { status(t, p, acmeHost, long) })
	}
	require.Equal(t, http.StatusOK, status(t, p, betaHost, "/"))
	clients.Wait()
	each := (ticks(t, p) - before) / requests
	t.Logf("a request takes %d hundredths of a second of CPU time", each)
	if each > most {
		harm = fmt.Sprintf("a GET request takes %d ms of CPU time", 10*each)
	}
	return harm
}

// ruleList is a list of files with rules for all paths. Each answers with the same page, and sets headers whose values
// have the path of the request many times. The next rule removes them.
func ruleList(placeholders, paths, headers int) string {
	value := strings.Repeat(":a", placeholders)
	var set, remove, rules []string
	for i := range headers {
		set = append(set, fmt.Sprintf(`["X-%d",%q]`, i, value))
		remove = append(remove, fmt.Sprintf(`"X-%d"`, i))
	}
	for range paths - 1 {
		rules = append(rules, fmt.Sprintf(`{"path":"/:a","remove":[%s],"set":[%s]}`, strings.Join(remove, ","),
			strings.Join(set, ",")))
	}
	rules = append(rules, fmt.Sprintf(`{"path":"/:a","remove":[%s]}`, strings.Join(remove, ",")))
	return `{` + pages("/page.png") + `,"headers":[` + strings.Join(rules, ",") + `],"redirects":[{"from":"/:a","to":"/page.png","status":200}]}`
}
