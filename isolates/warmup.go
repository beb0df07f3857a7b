package isolates

import (
	_ "embed"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// warmupWorker is a worker that does what most workers do. The parts of the runtime that it uses are in the snapshot as
// bytecode.
//
//go:embed warmup.js
var warmupWorker string

// warmUp runs events of each kind in a context that is discarded, and passes the result of each turn to show. Nothing
// depends on the results. Code that is not compiled here is compiled later.
func warmUp(c *v8x.Context, show func(v8x.Result)) {
	var call v8x.Call
	turn := func(call *v8x.Call, body []byte) { show(c.Call(call.Bytes(), body)) }
	turn(call.Reset(opEnv).Strings([]string{"NAME", "value"}).Strings([]string{"FLAGS", "{}"}).Strings([]string{"queues", "JOBS", "jobs"}).Bool(false).Bool(false), nil)
	_, loaded := c.Module(v8x.Source{Name: "warmup.js", Text: warmupWorker})
	show(loaded)
	headers := []string{"content-type", "application/json", "accept", "*/*"}
	body := []byte(`{"name":"Ada"}`)
	id := 0.
	next := func(op int) *v8x.Call {
		id++
		return call.Reset(op).Number(id)
	}
	for _, path := range []string{"json", "text", "missing", "stream", "features"} {
		turn(next(opFetchEvent).String("POST").String("http://warmup.invalid/"+path+"?a=1&b=2").Strings(headers).Content(), body)
	}
	turn(next(opFetchEvent).String("GET").String("http://warmup.invalid/").Null().Null(), nil)
	turn(next(opTaskEvent).String("1").Number(1).Strings(headers).Content(), body)
	turn(next(opScheduledEvent).String("2").Number(1).Strings(nil).Content().Number(0).String("* * * * *"), nil)
	turn(call.Reset(opTimers).Numbers(1), nil)
}
