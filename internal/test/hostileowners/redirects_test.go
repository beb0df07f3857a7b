package hostileowners

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// redirects has a server that beta trusts redirect its request to a server of acme, which records what it receives.
func redirects(t *testing.T, f *fleet) (harm string) {
	told := make(chan http.Header, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.Header }))
	defer thief.Close()
	trusted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	defer trusted.Close()
	f.deploy("beta", "ask", `export default { async task(event) {
		await fetch(event.payload + "/?token=of-the-url", { referrerPolicy: "no-referrer", headers: {
			authorization: "Bearer of-beta", cookie: "session=of-beta", "proxy-authorization": "Basic of-beta" } });
	} }`, "")
	data[any](t, call(t, f.as("beta"), events.Task, "beta", "ask", []byte(`"`+trusted.URL+`"`)))
	for name, values := range <-told {
		if value := strings.Join(values, " "); strings.Contains(value, "of-") {
			harm += name + ": " + value + "\n"
		}
	}
	return harm
}
