package hostcalls

import (
	"context"
	"errors"
	"net/netip"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// lookupBytes is what looking up a name counts as among the bytes that its run holds: goroutines, and messages of DNS.
const lookupBytes = 16 << 10

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
	ctx, cancel := context.WithCancel(r.callContext())
	c.cancel = cancel
	span := r.run.Attempt().Begin(lifecycle.Operation{
		Kind: lifecycle.Subrequest, Method: "LOOKUP", Target: "dns:" + host,
	})
	go func() { // it ends with the run
		defer cancel()
		conns := r.process.Egress.Of(r.run.Attempt().Worker.Owner)
		found, err := conns.Lookup(ctx, host)
		conns.Release()
		lifecycle.EndSpan(span, err)
		r.run.Drop(lookupBytes)
		r.answer(c, true, lookedUp(c, found, err))
	}()
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
