package isolates

import (
	_ "embed"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// rehearsal is a worker that does what most do. What of the runtime it uses is in the snapshot as bytecode.
//
//go:embed rehearsal.js
var rehearsal string

// rehearse runs events of each kind in a context that is thrown away, and shows what each turn left. Nothing depends on
// that: what does not get compiled here is compiled later.
func rehearse(c *v8x.Context, show func(v8x.Result)) {
	var call v8x.Call
	turn := func(call *v8x.Call, body []byte) { show(c.Call(call.Bytes(), body)) }
	turn(call.Reset(opEnv).Strings([]string{"NAME", "value"}).Strings([]string{"JOBS", "jobs"}).Bool(false).Bool(false), nil)
	_, loaded := c.Module(v8x.Source{Name: "rehearsal.js", Text: rehearsal})
	show(loaded)
	headers := []string{"content-type", "application/json", "accept", "*/*"}
	body := []byte(`{"name":"Ada"}`)
	id := 0.
	next := func(op int) *v8x.Call {
		id++
		return call.Reset(op).Number(id)
	}
	for _, path := range []string{"json", "text", "missing", "stream"} {
		turn(next(opFetchEvent).String("POST").String("http://rehearsal.invalid/"+path+"?a=1&b=2").Strings(headers).Content(), body)
	}
	turn(next(opFetchEvent).String("GET").String("http://rehearsal.invalid/").Null().Null(), nil)
	turn(next(opTaskEvent).String("1").Number(1).Strings(headers).Content(), body)
	turn(next(opScheduledEvent).String("2").Number(1).Strings(nil).Content().Number(0).String("* * * * *"), nil)
	turn(call.Reset(opTimers).Numbers(1), nil)
}
