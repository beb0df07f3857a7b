package hostileowners

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// heldResponses has one event request large responses and then keep its thread busy, so that no code reads them.
func heldResponses(t *testing.T, f *fleet) (harm string) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 60 << 4 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	defer host.Close()
	f.deploy("acme", "hold", `export default { async task(event) {
		event.noRetry();
		for (let i = 0; i < 50; i++) fetch(event.payload).catch(() => {});
		await scheduler.wait(1); // the requests are sent; the responses come while the thread is busy
		for (const end = performance.now() + 2000; performance.now() < end;);
	} }`, `{"limits": {"cpuMs": 20000, "heapMB": 64}}`)
	p := f.processes[0]
	_, before := rss(t, p)
	call(t, f.as("acme"), events.Task, "acme", "hold", []byte(`"`+host.URL+`"`)) // the result does not matter
	if _, most := rss(t, p); most-before > 150<<20 {
		harm = fmt.Sprintf("one event of a worker with 64 MB of heap took %d MB", (most-before)>>20)
	}
	return harm
}
