package wire

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// noCaller, noHolder and noTrace stand for what a message never has.
type (
	noCaller struct{ lifecycle.Caller }
	noHolder struct{ lifecycle.Holder }
	noTrace  struct{ context events.TraceContext }
)

func (t noTrace) Context() events.TraceContext             { return t.context }
func (noTrace) Begin(lifecycle.Operation) lifecycle.Span   { return nil }
func (noTrace) Record(lifecycle.Operation, lifecycle.Past) {}

// full sets every exported field below v that is its zero value. A field that is new is set too.
func full(t *testing.T, v reflect.Value) {
	t.Helper()
	if !v.IsZero() && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		v.SetInt(1)
	case reflect.Int64:
		v.SetInt(int64(time.Millisecond)) // in JSON, shorter ones are 0
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		full(t, v.Index(0))
		full(t, v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			full(t, v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		full(t, key)
		full(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if _, is := v.Interface().(time.Time); is {
			v.Set(reflect.ValueOf(time.Unix(1700000000, 123456789)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				full(t, v.Field(i))
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { panic("nobody calls it") }))
	case reflect.Interface:
		fullInterface(t, v)
	default:
		require.Failf(t, "no value", "a field has the type %s: say here what its value is", v.Type())
	}
}

func fullInterface(t *testing.T, v reflect.Value) {
	t.Helper()
	context := events.TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Sampled: true, State: "x"}
	for _, one := range []any{noCaller{}, noHolder{}, noTrace{context}} {
		if v.NumMethod() > 0 && reflect.TypeOf(one).Implements(v.Type()) {
			v.Set(reflect.ValueOf(one))
			return
		}
	}
	require.Zero(t, v.NumMethod(), "a field has the type %s: say here what its value is", v.Type())
	v.Set(reflect.ValueOf(1))
}

// Generators of what messages have. Each test makes its own: rapid writes into them.

func someText() *rapid.Generator[string]  { return rapid.StringN(0, 20, 60) }
func someBytes() *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), 0, 200) }
func someName() *rapid.Generator[string]  { return rapid.StringMatching(`[a-z][a-z-]{0,10}`) }
func someValue() *rapid.Generator[string] { return rapid.StringMatching(`[!-~]([ -~]{0,10}[!-~])?`) }

func someTime(t *rapid.T, what string) time.Time {
	if rapid.Bool().Draw(t, what+" is zero") {
		return time.Time{}
	}
	return time.Unix(0, rapid.Int64().Draw(t, what))
}

// pairs draws names and values.
func pairs(t *rapid.T, what string) (list []string) {
	for range rapid.IntRange(0, 5).Draw(t, what) {
		list = append(list, someName().Draw(t, "name"), someValue().Draw(t, "value"))
	}
	return list
}

func someFailure(t *rapid.T, what string) *events.Failure {
	if rapid.Bool().Draw(t, what) {
		return nil
	}
	return events.NewFailure(rapid.SampledFrom(events.Reasons[:]).Draw(t, "reason"), someText().Draw(t, "message"),
		someText().Draw(t, "stack"))
}

func someDelivery(t *rapid.T) *lifecycle.Delivery {
	e := &lifecycle.Delivery{Upgrade: rapid.Bool().Draw(t, "upgrade")}
	e.Kind, e.ID = rapid.SampledFrom(events.Kinds[:]).Draw(t, "kind"), someText().Draw(t, "id")
	e.Attempt, e.Stored = rapid.IntRange(0, 1<<31-1).Draw(t, "attempt"), someTime(t, "stored")
	e.Body = someBytes().Draw(t, "body")
	if e.Kind == events.Fetch {
		e.Method, e.URL, e.HTTPHeaders = someText().Draw(t, "method"), someText().Draw(t, "url"), pairs(t, "headers")
	} else {
		for range rapid.IntRange(0, 4).Draw(t, "headers") {
			if e.Header == nil {
				e.Header = events.Header{}
			}
			e.Header["X-"+someName().Draw(t, "name")] = rapid.SliceOfN(someText(), 1, 3).Draw(t, "values")
		}
		e.ScheduledTime, e.Cron = rapid.Int64().Draw(t, "time"), someText().Draw(t, "cron")
	}
	if rapid.Bool().Draw(t, "requester") {
		e.Requester = &events.Requester{Credit: rapid.Int64Range(1, 1<<62).Draw(t, "credit")}
	}
	if rapid.Bool().Draw(t, "parts") {
		e.Parts = &events.Parts{N: rapid.IntRange(0, 1<<20).Draw(t, "n"), Live: rapid.Bool().Draw(t, "live"),
			Size: rapid.Int64Range(0, 1<<62).Draw(t, "size")}
	}
	if rapid.Bool().Draw(t, "service") {
		e.Service = &events.ServiceCall{Entrypoint: someText().Draw(t, "entrypoint"), Method: someText().Draw(t, "method"),
			CF: someText().Draw(t, "cf")}
	}
	return e
}

func someAttempt(t *rapid.T) *lifecycle.Attempt {
	a := &lifecycle.Attempt{Number: rapid.IntRange(0, 1<<31-1).Draw(t, "number"), Start: someTime(t, "start"),
		Own: rapid.Bool().Draw(t, "own")}
	if rapid.Bool().Draw(t, "halt") {
		a.Halt = &events.Signal{}
	}
	if rapid.Bool().Draw(t, "traced") {
		c := events.TraceContext{Sampled: rapid.Bool().Draw(t, "sampled"), State: someText().Draw(t, "state")}
		copy(c.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		copy(c.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
		a.Trace = noTrace{c}
	}
	if rapid.Bool().Draw(t, "batch") {
		for range rapid.IntRange(1, workers.MaxBatch.MaxSize).Draw(t, "events") {
			a.Batch = append(a.Batch, someDelivery(t))
		}
		a.Event = a.Batch[0]
		return a
	}
	a.Event = someDelivery(t)
	return a
}

func someReport(t *rapid.T) (rep lifecycle.Report, socket uint64) {
	what := rapid.IntRange(1, 3).Draw(t, "parts")
	if what&1 != 0 {
		p := &events.Reply{Status: rapid.SampledFrom([]int{0, 101, 200, 204, 404, 599}).Draw(t, "status"),
			StatusText: someValue().Draw(t, "text"), Headers: pairs(t, "headers"), Body: someBytes().Draw(t, "body"),
			Dropped: rapid.IntRange(0, 1<<40).Draw(t, "dropped"), Failure: someFailure(t, "no failure")}
		if p.Status == 101 {
			p.Socket, socket = &events.Socket{}, rapid.Uint64Range(1, 1<<63).Draw(t, "socket")
		} else if rapid.Bool().Draw(t, "stream") {
			p.Stream = &events.Stream{}
		}
		rep.Reply = p
	}
	if what&2 != 0 {
		rep.End = someEnd(t)
	}
	return rep, socket
}

func someEnd(t *rapid.T) *lifecycle.End {
	e := &lifecycle.End{Failure: someFailure(t, "no failure"), Broken: someFailure(t, "not broken")}
	for name, field := range map[string]*bool{"interrupted": &e.Interrupted, "started": &e.Started, "no retry": &e.NoRetry,
		"retry": &e.Retry, "waited": &e.Waited, "warm": &e.Warm, "lost": &e.Lost} {
		*field = rapid.Bool().Draw(t, name)
	}
	delay := rapid.Int64Range(-1, int64(maxTime))
	e.CPU = time.Duration(rapid.Int64Range(0, int64(maxTime)).Draw(t, "cpu"))
	e.RetryDelay = time.Duration(delay.Draw(t, "delay"))
	for range rapid.IntRange(0, 5).Draw(t, "items") {
		it := lifecycle.Item{Decision: rapid.SampledFrom([]lifecycle.Decision{lifecycle.Undecided, lifecycle.Acked,
			lifecycle.Again, lifecycle.Failed}).Draw(t, "decision"), Delay: time.Duration(delay.Draw(t, "delay"))}
		if it.Decision == lifecycle.Failed {
			it.Failure = events.Fail(events.ReasonException, "%s", someText().Draw(t, "why"))
		}
		e.Items = append(e.Items, it)
	}
	return e
}
