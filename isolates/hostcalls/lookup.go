package hostcalls

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// lookupBytes is what looking up a name counts as among the bytes that its run holds: goroutines, and messages of DNS.
const lookupBytes = 16 << 10

const (
	// maxLookups is how many names a run looks up at once. Each takes one of the owner's connections.
	maxLookups = 8
	// lookupCPU is what the owner is charged for a lookup, and addressCPU for each address: the resolver sorts them.
	lookupCPU, addressCPU = 100 * time.Microsecond, 10 * time.Microsecond
)

var errLookupName = egress.Told{Text: "the name is too long", Code: "ENOTFOUND"}

// lookUp carries out a command to look up the addresses of a name: id, name. It counts as a subrequest.
func (r *Calls) lookUp(in *v8x.Commands) {
	size := in.Left()
	c := r.register(in.Number())
	r.fetches.made++
	err := r.fetches.tooMany(r)
	host := ""
	switch {
	case err != nil:
	case size > 4*maxHostName:
		err = errLookupName
	default:
		if host = in.Text(); host == "" || len(host) > maxHostName {
			err = errLookupName
		} else {
			err = r.run.Hold(lookupBytes)
		}
	}
	if err != nil {
		r.answer(c, true, lookedUp(c, nil, err))
		return
	}
	if r.lookups == nil {
		r.lookups = make(chan struct{}, maxLookups)
	}
	ctx, cancel := context.WithCancel(r.callContext())
	c.cancel = cancel
	span := r.run.Attempt().Begin(lifecycle.Operation{
		Kind: lifecycle.Subrequest, Method: "LOOKUP", Target: "dns:" + host,
	})
	go func() { // it ends with the run
		defer cancel()
		found, err := r.addresses(ctx, host)
		lifecycle.EndSpan(span, err)
		r.run.Drop(lookupBytes)
		r.answer(c, true, lookedUp(c, found, err))
	}()
}

// addresses looks up a name when the run has fewer than maxLookups under way.
func (r *Calls) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case r.lookups <- struct{}{}:
		defer func() { <-r.lookups }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conns := r.process.Egress.Of(r.run.Attempt().Worker.Owner)
	defer conns.Release()
	found, err := conns.Lookup(ctx, host)
	r.run.ChargeOwner(lookupCPU + time.Duration(len(found))*addressCPU)
	return found, err
}

// lookedUp tells JavaScript the addresses of a name, or why there are none.
func lookedUp(c *call, found []netip.Addr, failure error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		texts := make([]string, len(found))
		for i, a := range found {
			texts[i] = a.String()
		}
		call.Reset(js.OpLookedUp).Number(c.id).Strings(texts)
		if failure == nil {
			call.Null()
			return nil
		}
		code := ""
		if told, ok := errors.AsType[egress.Told](failure); ok {
			code = told.Code
		}
		if code == "" { // the run has no more for it
			call.String(failure.Error())
			return nil
		}
		call.String(code)
		return nil
	}
}
