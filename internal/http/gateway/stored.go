package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Publisher stores events. Any goroutine may call its methods.
type Publisher interface {
	// Admit returns why the owner may not store an event of this size now, or nil. It counts the event.
	Admit(owner string, size int) *events.Failure
	// Publish and Open are those of client.Client.
	Publish(ctx context.Context, r client.Request) (*client.Ack, error)
	Open(ctx context.Context, r client.Request) (*events.Reply, io.ReadCloser, error)
}

const (
	// storedWindow is what a client.Client may hold of a response body that the client of the gateway has not taken.
	storedWindow = 1 << 20
	// storedUpload is what a client.Client may hold of a request body that is stored in parts.
	storedUpload = 9 * 512 << 10
	// afterWall is how long the reply of a stored event may take beyond the wait for its start and the wall-clock limit: a
	// process may die meanwhile, and another one runs the event again.
	afterWall = 2 * time.Minute
	// maxRenames is how often an event gets a new id because another one has its id.
	maxRenames = 2
)

// store stores the event of the request, and answers as the delivery says.
func (x *exchange) store() {
	if f := x.g.Stored.Admit(x.event.Owner, len(x.event.Body)+len(x.event.URL)); f != nil {
		x.fail(f)
		return
	}
	wait := x.g.cfg.Wait + x.service.worker.Limits.OrDefault().Wall.Duration() + afterWall
	ctx, cancel := context.WithTimeout(x.r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(x.g.ended, cancel)()
	reply, body, err := x.publish(ctx)
	for range maxRenames {
		// a body in parts has been read
		if !errors.Is(err, client.ErrDuplicate) || x.event.Parts != nil || guard.EventIDs.Off() {
			break
		}
		x.g.log.Error().Str("worker", x.event.Target()).Str("event", x.event.ID).
			Msg("another event is stored under the id that this request was given; it is stored under a new one")
		x.rename()
		reply, body, err = x.publish(ctx)
	}
	if reply != nil {
		x.version = reply.Version
	}
	switch {
	case err != nil:
		x.notStored(ctx, err)
	case reply == nil: // accepted
		x.header()
		x.head(http.StatusAccepted)
	case reply.CreditSubject == "":
		x.write(reply)
	default:
		x.relay(reply, body)
	}
}

// publish stores the event, and waits for the reply. An accepted event has none.
func (x *exchange) publish(ctx context.Context) (*events.Reply, io.ReadCloser, error) {
	r := x.request()
	if x.service.Delivery != workers.DeliverAccepted {
		return x.g.Stored.Open(ctx, r)
	}
	r.Deadline = time.Time{} // no client waits for its start
	ack, err := x.g.Stored.Publish(ctx, r)
	if err == nil && ack.Duplicate && !guard.EventIDs.Off() {
		err = client.ErrDuplicate // the id is new, so the event of that id is another one, and this one is not stored
	}
	return nil, nil, err
}

// rename gives the event a new id.
func (x *exchange) rename() {
	e := x.event
	e.ID = x.g.ids.Next()
	for i := 0; i+1 < len(e.HTTPHeaders); i += 2 {
		if e.HTTPHeaders[i] == headerEventID {
			e.HTTPHeaders[i+1] = e.ID
		}
	}
}

// request is the event as a client publishes it.
func (x *exchange) request() client.Request {
	e := x.event
	r := client.Request{
		Kind: events.Fetch, Owner: e.Owner, Worker: e.Worker, ID: e.ID, Version: e.Version, VersionKey: e.VersionKey,
		Deadline: e.Deadline,
		Method:   e.Method, URL: e.URL, HTTPHeader: http.Header{},
	}
	for i := 0; i+1 < len(e.HTTPHeaders); i += 2 {
		r.HTTPHeader[e.HTTPHeaders[i]] = append(r.HTTPHeader[e.HTTPHeaders[i]], e.HTTPHeaders[i+1])
	}
	if r.Body = e.Body; e.Parts != nil {
		r.BodyFrom = x.body
	}
	return r
}

// notStored answers when there is no reply: ctx is that of the publisher.
func (x *exchange) notStored(ctx context.Context, err error) {
	var failure *events.Failure
	switch why := x.body.why(); {
	case why != nil:
		x.refuse(why)
	case errors.As(err, &failure):
		x.fail(failure)
	case x.r.Context().Err() != nil:
		x.cut()
	case errors.Is(err, client.ErrMalformed):
		x.refuse(&refusal{http.StatusBadRequest, err.Error()})
	case x.g.ended.Err() != nil:
		x.refuse(&refusal{http.StatusServiceUnavailable, "unavailable: the process ends; the event may be stored"})
	case ctx.Err() != nil:
		x.refuse(&refusal{http.StatusGatewayTimeout, "no reply came in time; the event may be stored, and may still run"})
	default:
		x.g.often.Warn(err, "event of a request not stored").Str("worker", x.event.Target()).Send()
		x.refuse(&refusal{http.StatusServiceUnavailable, "unavailable: the event was not stored"})
	}
}

// relay writes a reply whose body comes in chunks. The connection is cut when the body breaks off.
func (x *exchange) relay(r *events.Reply, body io.ReadCloser) {
	defer func() { _ = body.Close() }()
	if !x.g.owners.hold(x.event.Owner, storedWindow) {
		x.refuse(noMemory)
		return
	}
	defer x.g.owners.drop(x.event.Owner, storedWindow)
	x.headers(r)
	x.head(r.Status)
	piece := make([]byte, partBytes)
	for {
		n, err := body.Read(piece)
		if x.send(piece[:n]) != nil || x.control.Flush() != nil {
			x.cut()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			x.cut()
		}
	}
}
