package bindings

import (
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Services has workers answer others of their owner (env.NAME of a service binding).
type Services interface {
	// Fetch prepares a request to the worker. The host of its URL means nothing. body is its whole body; if it is nil,
	// r.Body is read while the event runs.
	Fetch(r *http.Request, body []byte, c *lifecycle.ServiceCall) lifecycle.ServiceRequest
	// Call has the worker call a method. It may be called by a thread, and does not block. answer gets the result, as
	// JavaScript serialized it, or the error, from any goroutine: it must not block. cancel says that the
	// caller no longer waits: answer is no longer called, unless it is about to be.
	Call(c *lifecycle.ServiceCall, args []byte, answer func(result []byte, err error)) (cancel func())
}

// ownExports begins the name of a binding to an export of the worker itself: ctx.exports, and exports of
// cloudflare:workers. No name in env has a point.
const ownExports = "exports."

// Service finds what a service binding of w names. own says that it is an export of w itself.
func Service(w *workers.Worker, name string) (target events.ServiceTarget, own, ok bool) {
	if export, own := strings.CutPrefix(name, ownExports); own {
		if export == "default" {
			export = ""
		}
		return events.ServiceTarget{Worker: w.Name, Entrypoint: export}, true, true
	}
	b, ok := w.Find(workers.BindingService, name)
	if !ok {
		return target, false, false
	}
	target, err := events.ParseServiceTarget(b.Value)
	return target, false, err == nil
}
