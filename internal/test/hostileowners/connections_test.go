package hostileowners

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// allConnections has acme hold as many connections to a host as it gets. Then beta sends a request to that host.
func allConnections(t *testing.T, f *fleet) (harm string) {
	const share = 64 // limit of connections to a host
	held := make(chan struct{}, 16*share)
	gone := make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			held <- struct{}{}
			<-gone
		}
		_, _ = io.WriteString(w, "served")
	}))
	defer host.Close()
	defer close(gone)
	f.deploy("acme", "hold", `export default { task: (event) => Promise.all(Array.from({ length: 4 }, () => fetch(event.payload + "/hold"))) }`, "")
	f.deploy("beta", "ask", `export default { async task(event) {
		try { return await (await fetch(event.payload, { signal: AbortSignal.timeout(6000) })).text() } catch (error) { return error.name }
	} }`, "")
	acme := f.as("acme")
	for range share / 4 {
		if err := acme.PublishRequest(subjects.Call(events.Task, "acme", "hold"), acme.NewInbox(),
			[]byte(`"`+host.URL+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	for range share {
		<-held
	}
	if answer := data[string](t, call(t, f.as("beta"), events.Task, "beta", "ask",
		[]byte(`"`+host.URL+`"`))); answer != "served" {
		harm = "beta's request while acme has all its connections: " + answer
	}
	return harm
}
