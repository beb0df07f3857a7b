package hostileowners

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// privateAddresses has a worker connect to addresses that are not public, in every notation.
func privateAddresses(t *testing.T, f *fleet) (harm string) {
	var reached atomic.Int64
	own := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer own.Close()
	f.deploy("acme", "probe", `export default { task: (event) => Promise.all(event.payload.map(async (url) => {
		try { await fetch(url, { signal: AbortSignal.timeout(1000) }); return url + " answered" } catch (error) { return url + ": " + error.message }
	})) }`, `{"limits": {"cpuMs": 1000}}`)
	port := own.URL[strings.LastIndex(own.URL, ":"):]
	var urls []string
	for _, host := range []string{"127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0"} {
		urls = append(urls, "http://"+host+port+"/")
	}
	// No server listens there. The addresses of clouds are left out, because the control does connect:
	// isolates.TestPublicAddresses has them all.
	for _, host := range []string{"[fec0::1]", "[::7f00:1]", "[3fff::1]", "[5f00::1]", "[100:0:0:1::1]",
		"[64:ff9b::127.0.0.1]", "[2002:7f00:1::]"} {
		urls = append(urls, "http://"+host+port+"/")
	}
	payload, _ := json.Marshal(urls)
	for _, line := range data[[]string](t, call(t, f.as("acme"), events.Task, "acme", "probe", payload)) {
		// A name without an address is no harm, nor is a name that is refused before a connection.
		if !strings.Contains(line, "address is not allowed") && !strings.Contains(line, "no such host") {
			harm += line + "\n"
		}
	}
	if n := reached.Load(); n > 0 {
		harm += fmt.Sprintf("the server on loopback had %d requests", n)
	}
	return harm
}
