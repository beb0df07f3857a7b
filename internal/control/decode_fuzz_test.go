package control

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// Every request is decoded, or refused with a reason and code 400. All decoded values are within bounds.
func FuzzControlRequest(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"ids":[1,2],"dryRun":true}`, `{"owner":"a","worker":"b","kind":"task","reason":"cpu","since":"1h","until":"2026-01-02T15:04:05Z","match":"x+","replays":"1-3","after":7,"limit":9}`,
		`{"all":true,"rate":1e3,"maxReplays":4,"force":true,"to":"w@1-0123456789ab","patch":{"a":null},"setHeaders":{"X":["y"]},"removeHeaders":["Z"]}`,
		`{"id":1,"body":"x"}`, `{"bodyBase64":"AA=="}`, `[]`, `{"job":"a.1","cancel":true}`, `{"weight":2,"ceilings":{"cpuMs":5}}`, ``, `null`, `{"ids":null}`, `{"patch":null}`,
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
			if e, err := r.edit(); err == nil && e.Validate() != nil {
				t.Fatal(e.Validate())
			}
		}
		var p events.Policy
		if check(decodeRequest(data, &p)) && p.Validate() == nil {
			if _, err := json.Marshal(p); err != nil {
				t.Fatal(err)
			}
		}
		check(decodeRequest(data, &jobRequest{}))
		check(decodeRequest(data, &struct{}{}))
	})
}
