package gateway

import (
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// exchange is one request with its response. One goroutine has it, that of the server.
type exchange struct {
	g         *Gateway
	w         http.ResponseWriter
	r         *http.Request
	control   *http.ResponseController
	began     time.Time
	service   service
	cors      crossOrigin
	prefix    string              // of the request's path, which the worker does not see; escaped
	path      workers.Path        // of the request below prefix
	open      bool                // the path needs no token, and another one of the worker may need it
	upgrades  bool                // the client wants a WebSocket, and can have one
	event     *lifecycle.Delivery // nil when the request becomes none
	body      *requestBody        // of the event
	requester *events.Requester

	recorded bool            // counted and logged
	upgraded bool            // the request goes on as a WebSocket
	version  string          // that answered
	status   int             // of the response; statusGone = none was sent
	sent     int64           // bytes of its body
	seen     beginning       // of its body, for http.log
	broken   *events.Failure // why its body ended before it was complete; nil = it did not, or the client went
}

// statusGone is in the log when the client went before it had a response, as in that of nginx.
const statusGone = 499

func newExchange(g *Gateway, w http.ResponseWriter, r *http.Request) *exchange {
	g.metrics.running.Inc()
	return &exchange{g: g, w: w, r: r, control: http.NewResponseController(w), began: time.Now(), status: statusGone}
}

// maxBody is the size of the largest request body that the worker and the process take.
func (x *exchange) maxBody() int64 {
	if own := int64(x.service.MaxBody); own > 0 {
		return min(own, x.g.cfg.MaxBody)
	}
	return x.g.cfg.MaxBody
}

func (x *exchange) checkLength() *refusal {
	if most := x.maxBody(); x.r.ContentLength > most {
		return tooLarge(most)
	}
	return nil
}

// run runs the event and writes its reply.
func (x *exchange) run() {
	x.requester = &events.Requester{Credit: window}
	x.body = &requestBody{from: http.MaxBytesReader(x.w, x.r.Body, x.maxBody()), control: x.control,
		gone: x.requester.Gone, times: &x.g.times}
	x.body.owners, x.body.owner = &x.g.owners, x.event.Owner
	x.body.seen.most, x.seen.most = kept(x.service.Log)
	if x.r.ContentLength != 0 {
		defer x.body.leave()
		_ = x.control.SetWriteDeadline(time.Time{}) // that of the response before it must not cut "100 Continue"
		_ = x.control.EnableFullDuplex()            // else the server reads the rest of the body itself when the response begins
	}
	if x.upgrades {
		if no := x.checkUpgrade(); no != nil {
			x.refuse(no)
			return
		}
	}
	owners, owner := &x.g.owners, x.event.Owner
	size, stored := x.body.size(x.r.ContentLength), x.service.Delivery == workers.DeliverStored ||
		x.service.Delivery == workers.DeliverAccepted
	if size == 0 && x.r.ContentLength != 0 {
		size = partBytes
		if stored {
			size = storedUpload
		}
	}
	if !owners.hold(owner, size) {
		x.refuse(noMemory)
		return
	}
	drop := func() { owners.drop(owner, size) }
	if err := x.body.give(x.event, x.r.ContentLength); err != nil {
		drop()
		why := x.body.why()
		if why == nil {
			x.cut()
		}
		x.refuse(why)
		return
	}
	if stored {
		defer drop()
		x.store()
		return
	}
	c := newCall(drop)
	x.event.Caller, x.event.Requester = c, x.requester
	x.event.Version, x.event.BySplit = x.service.worker.Version, !x.service.named
	x.g.Runner.Submit([]*lifecycle.Delivery{x.event})
	if reply := x.await(c); reply != nil {
		x.version = reply.Version
		x.write(reply)
	}
}

var noMemory = &refusal{http.StatusServiceUnavailable, "the bodies of this owner take too much memory: clients send or take them slowly"}

// cut ends the connection without a response. Otherwise the server would answer 200.
func (x *exchange) cut() { panic(http.ErrAbortHandler) }

// await waits for the reply. It returns nil when the request is answered without it.
func (x *exchange) await(c *call) *events.Reply {
	select {
	case r := <-c.reply:
		return r
	case <-c.end:
	case <-x.r.Context().Done():
		x.requester.Gone()
	case <-x.g.ended.Done():
		x.requester.Gone()
	}
	select {
	case r := <-c.reply: // it came at the same time
		return r
	default:
	}
	switch {
	case x.r.Context().Err() == nil:
		x.refuse(&refusal{http.StatusServiceUnavailable, "unavailable: the process ends"})
	case x.event.Parts == nil:
		x.cut()
	default: // the client may also have been too slow
		x.refuse(&refusal{http.StatusRequestTimeout, "the body did not come whole"})
	}
	return nil
}

// record counts and logs the request, once.
func (x *exchange) record() {
	if x.recorded {
		return
	}
	x.recorded = true
	took := time.Since(x.began)
	came := int64(0)
	if x.body != nil {
		came = x.body.came
	}
	x.g.metrics.record(x.status, took, came, x.sent)
	x.g.lines.tell(x, took, came)
	if !x.g.cfg.Log {
		return
	}
	line := x.g.log.Info().Str("method", clipped(x.r.Method, maxLogged)).Str("host", clipped(x.r.Host, maxLogged)).
		Str("path", clipped(x.r.URL.EscapedPath(), maxLogged)).
		Int("status", x.status).Int64("in", came).Int64("out", x.sent).Dur("duration", took)
	if e := x.event; e != nil {
		line = line.Str("owner", e.Owner).Str("worker", e.Worker).Str("version", x.version).Str("event", e.ID)
	} else if w := x.service.worker; w != nil && x.version != "" { // a file answered
		line = line.Str("owner", w.Owner).Str("worker", w.Name).Str("version", x.version)
	}
	if x.broken != nil {
		line = line.Str("broken", string(x.broken.Reason)) // the message is the owner's
	}
	line.Stringer("client", x.g.clientOf(x.r).address).Msg("request")
}

// maxLogged is the most bytes of a text of the client in the log. Queries may have secrets, so they are not logged.
const maxLogged = 512
