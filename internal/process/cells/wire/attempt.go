package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An attempt goes to a cell with what a handler may see of its event, and with what the cell needs to run it. What the
// process knows beside that stays there: subjects, deliveries, crashes, who waits for the reply.

// PutAttempt appends an attempt with its number, and that of its worker.
func PutAttempt(w *Writer, id, worker uint64, a *lifecycle.Attempt) {
	w.Uint(id)
	w.Uint(worker)
	w.Int(int64(a.Number))
	w.Time(a.Start)
	w.Bool(a.Own)
	w.Bool(a.Halt != nil || a.Event.Halt != nil)
	w.Bool(a.Trace != nil)
	if a.Trace != nil {
		putTrace(w, a.Trace.Context())
	}
	w.Uint(uint64(len(a.Batch)))
	if a.Batch == nil {
		putDelivery(w, a.Event)
	}
	for _, e := range a.Batch {
		putDelivery(w, e)
	}
}

func putTrace(w *Writer, c events.TraceContext) {
	w.b = append(append(w.b, c.TraceID[:]...), c.SpanID[:]...)
	w.Bool(c.Sampled)
	w.Text(c.State)
}

func readTrace(r *Reader) (c events.TraceContext) {
	if n := len(c.TraceID) + len(c.SpanID); len(r.b) < n {
		r.Fail(errShort)
	} else {
		r.b = r.b[copy(c.TraceID[:], r.b):]
		r.b = r.b[copy(c.SpanID[:], r.b):]
	}
	c.Sampled, c.State = r.Bool(), r.Text()
	return c
}

// Attempt is an attempt as a cell has it. The cell sets its Worker, and replaces Halt and Trace.
type Attempt struct {
	ID, Worker uint64
	Thread     int // that the broker gave it to; the cell sets it
	lifecycle.Attempt
	Traced  bool                // spans of it are kept
	Context events.TraceContext // of Trace, if it is traced
	delivery
}

// delivery is the memory of the one event of most attempts.
type delivery struct {
	event     lifecycle.Delivery
	requester events.Requester
}

// ReadAttempt takes an attempt. Parts have no Read, and Service has no callers.
func ReadAttempt(r *Reader) *Attempt {
	a := &Attempt{ID: r.Uint(), Worker: r.Uint()}
	a.Number, a.Start, a.Own = int(r.Number(0, math.MaxInt32)), r.Time(), r.Bool()
	if r.Bool() {
		a.Halt = &events.Signal{}
	}
	if a.Traced = r.Bool(); a.Traced {
		a.Context = readTrace(r)
	}
	n := r.Uint()
	if n == 0 {
		readDelivery(r, &a.delivery)
		a.Event = &a.delivery.event
		return a
	}
	if n > uint64(workers.MaxBatch.MaxSize) {
		r.Fail(fmt.Errorf("a batch has %d events: at most %d", n, workers.MaxBatch.MaxSize))
		return a
	}
	a.Batch = make([]*lifecycle.Delivery, n)
	for i := range a.Batch {
		one := &delivery{}
		readDelivery(r, one)
		a.Batch[i] = &one.event
	}
	a.Event = a.Batch[0]
	return a
}

// What an event has beside its fields.
const (
	hasRequester = 1 << iota
	hasParts
	hasService
	hasUpgrade
	isSourced
)

func putDelivery(w *Writer, e *lifecycle.Delivery) {
	has := uint64(0)
	if e.Requester != nil {
		has |= hasRequester
	}
	if e.Parts != nil {
		has |= hasParts
	}
	if e.Service != nil {
		has |= hasService
	}
	if e.Upgrade {
		has |= hasUpgrade
	}
	if e.Sourced {
		has |= isSourced
	}
	w.Uint(uint64(e.Kind))
	w.Uint(has)
	w.Text(e.ID)
	w.Int(int64(e.Attempt))
	w.Time(e.Stored)
	w.Bytes(e.Body)
	if e.Kind == events.Fetch {
		w.Text(e.Method)
		w.Text(e.URL)
		w.Texts(e.HTTPHeaders)
	} else {
		putHeaders(w, e)
		w.Int(e.ScheduledTime)
		w.Text(e.Cron)
	}
	if e.Requester != nil {
		w.Int(e.Requester.Credit)
	}
	if p := e.Parts; p != nil {
		w.Int(int64(p.N))
		w.Bool(p.Live)
		w.Int(p.Size)
	}
	if s := e.Service; s != nil {
		w.Text(s.Entrypoint)
		w.Text(s.Method)
		w.Text(s.CF)
	}
}

// putHeaders appends the headers that the handler may see.
func putHeaders(w *Writer, e *lifecycle.Delivery) {
	n := uint64(0)
	e.UserHeaders(func(string, string) { n++ })
	w.Uint(2 * n)
	e.UserHeaders(func(name, value string) {
		w.Text(name)
		w.Text(value)
	})
}

func readDelivery(r *Reader, d *delivery) {
	e := &d.event
	e.Kind = events.Kind(r.Uint())
	has := r.Uint()
	e.ID, e.Attempt, e.Stored = r.Text(), int(r.Number(0, math.MaxInt32)), r.Time()
	e.Body = append([]byte(nil), r.Bytes()...)
	if e.Kind == events.Fetch {
		e.Method, e.URL, e.HTTPHeaders = r.Text(), r.Text(), r.Texts()
	} else {
		e.Header = readHeaders(r)
		e.ScheduledTime, e.Cron = r.Int(), r.Text()
	}
	if has&hasRequester != 0 {
		d.requester.Credit = r.Number(1, math.MaxInt64)
		e.Requester = &d.requester
	}
	if has&hasParts != 0 {
		e.Parts = &events.Parts{N: int(r.Number(0, math.MaxInt32)), Live: r.Bool(), Size: r.Number(0, math.MaxInt64)}
	}
	if has&hasService != 0 {
		e.Service = &events.ServiceCall{Entrypoint: r.Text(), Method: r.Text(), CF: r.Text()}
	}
	e.Upgrade, e.Sourced = has&hasUpgrade != 0, has&isSourced != 0
}

var errPairs = errors.New("a list of headers has a name without a value")

func readHeaders(r *Reader) events.Header {
	list := r.Texts()
	if len(list)%2 != 0 {
		r.Fail(errPairs)
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	h := make(events.Header, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		h[list[i]] = append(h[list[i]], list[i+1])
	}
	return h
}
