package bindings

import (
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Services has workers answer others of their owner (env.NAME of a service binding).
type Services interface {
	// Fetch has the worker answer a request, and passes the response to rw. The host of the URL means nothing. It is called
	// from a goroutine of its own, and returns when the response is complete or the context of r is over. The error is in
	// words for the author of the caller.
	Fetch(rw http.ResponseWriter, r *http.Request, c *lifecycle.ServiceCall) error
	// Call has the worker call a method. It may be called by a thread, and does not block. answer gets the result, as
	// JavaScript serialized it, or the error, from any goroutine: it must not block. cancel says that the
	// caller no longer waits: answer is not called any more, unless it is about to be.
	Call(c *lifecycle.ServiceCall, args []byte, answer func(result []byte, err error)) (cancel func())
}

// ownExports begins the name of a binding to an export of the worker itself: ctx.exports, and exports of
// cloudflare:workers. No name in env has a point.
const ownExports = "exports."

// Service finds what a service binding of w names. own says that it is an export of w itself.
func Service(w *events.Worker, name string) (target events.ServiceTarget, own, ok bool) {
	if export, own := strings.CutPrefix(name, ownExports); own {
		if export == "default" {
			export = ""
		}
		return events.ServiceTarget{Worker: w.Name, Entrypoint: export}, true, true
	}
	b, ok := w.Find(events.BindingService, name)
	if !ok {
		return target, false, false
	}
	target, err := events.ParseServiceTarget(b.Value)
	return target, false, err == nil
}
