package control

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Every request is decoded, or refused with a reason and code 400. All decoded values are within bounds.
func FuzzControlRequest(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"ids":[1,2],"dryRun":true}`, `{"owner":"a","worker":"b","kind":"task","reason":"cpu","since":"1h","until":"2026-01-02T15:04:05Z","match":"x+","text":"EUR","replays":"1-3","after":7,"limit":9}`,
		`{"all":true,"rate":1e3,"maxReplays":4,"force":true,"to":"w@1-0123456789ab","patch":{"a":null},"setHeaders":{"X":["y"]},"removeHeaders":["Z"]}`,
		`{"id":1,"body":"x"}`, `{"worker":"w","file":"w.js","spec":{"vars":{"A":"1"}},"bundle":{"id":"x","parts":1,"code":1,"sha256":"` + strings.Repeat("0", 64) +
			`"},"steps":[{"percent":10,"forMs":1000}]}`, `{"bodyBase64":"AA=="}`, `{"worker":"w","version":"1","code":true,"from":7}`, `[]`,
		`{"owner":"a","id":"0123456789abcdef","grep":"x+","status":["5xx"],"sample":0.5}`, `{"job":"a.1","cancel":true}`, `{"weight":2,"ceilings":{"cpuMs":5}}`, ``,
		`{"worker":"a/w","kind":"task","id":"t","headers":[{"name":"X","value":"y"}],"body":"{}"}`,
		`{"worker":"a/w","kind":"fetch","id":"t","method":"PUT","path":"/","headers":[{"name":"X-Real-Ip","value":"y"}]}`,
		`null`, `{"ids":null}`, `{"newest":true,"before":9}`, `{"patch":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) bool {
			var ce *Error
			if err != nil && (!errors.As(err, &ce) || ce.Code != 400 || ce.Text == "") {
				t.Fatalf("%T %v", err, err)
			}
			return err == nil
		}
		var r Replay
		if check(decodeRequest(data, &r)) {
			s, err := r.Selection.parse()
			if check(err) && s.IDs == nil && !r.All && !r.Narrow() {
				t.Fatal("it chooses nothing")
			}
			o, err := r.options()
			if check(err) && (o.Rate < 0 || o.MaxReplays < 0) {
				t.Fatalf("%+v", o)
			}
			if len(r.Owner)+len(r.Match)+len(r.To) > 3*maxControlText || len(r.IDs) > maxControlEntries ||
				len(r.RemoveHeaders) > 100 {
				t.Fatal("bounds")
			}
			if e, err := r.edit(); err == nil && e.Validate() != nil {
				t.Fatal(e.Validate())
			}
		}
		var l Tail
		if check(decodeRequest(data, &l)) && check(l.Parse()) && strings.ContainsAny(l.Owner+l.ID, ".*> \r\n") {
			t.Fatalf("%+v", l)
		}
		var p workers.Policy
		if check(decodeRequest(data, &p)) && p.Validate() == nil {
			if _, err := json.Marshal(p); err != nil {
				t.Fatal(err)
			}
		}
		var d DeployVersion
		if check(decodeRequest(data, &d)) && check(d.check()) && (d.Bundle.Code < 1 || d.Bundle.SourceMap < 0 ||
			strings.ContainsAny(d.Bundle.ID, ".*> \r\n")) {
			t.Fatalf("%+v", d)
		}
		var e SendEvent
		if check(decodeRequest(data, &e)) {
			checkSend(t, e, check)
		}
		check(decodeRequest(data, &jobRequest{}))
		check(decodeRequest(data, &struct{}{}))
	})
}

// checkSend checks that a test event has bounds, and no header that only the fleet sets.
func checkSend(t *testing.T, e SendEvent, check func(error) bool) {
	t.Helper()
	r, err := e.request()
	if !check(err) {
		return
	}
	if len(r.Body) > 256<<10 || r.ID == "" || len(e.Headers) > 64 {
		t.Fatalf("%+v", r)
	}
	for name := range r.Header {
		if events.OfFleet(name) && name != events.HeaderCron {
			t.Fatalf("%+v", r)
		}
	}
	for name := range r.HTTPHeader {
		if events.OfGateway(name) {
			t.Fatalf("%+v", r)
		}
	}
}
