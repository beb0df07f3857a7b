package deploy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// decodeRecord reads a record with its bundle.
func decodeRecord(text []byte) (*record, error) {
	r, err := decodeSummary(text)
	if err == nil {
		err = r.readBundle()
	}
	return r, err
}

func aWorker(t testing.TB) *workers.Worker {
	t.Helper()
	b := bundle.Bundle{Code: "export default {};", File: "w.js", SourceMap: []byte("{}"), Spec: workers.Spec{
		Mode: workers.Pinned, Bindings: workers.Bindings{Vars: map[string]string{"A": "b"}},
		OnDead: &events.DeadHook{Worker: "x"}, Idempotent: true,
	}}
	hash, err := b.Hash()
	require.NoError(t, err)
	return &workers.Worker{
		Owner: "acme", Name: "w", Number: 3, Version: version(3, hash), Hash: hash, Spec: b.Spec,
		Handlers: []events.Kind{events.Task},
		Code:     b.Code, File: b.File, SourceMap: b.SourceMap, DeployedAt: time.Now().UTC(),
	}
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	w := aWorker(t)
	text, object, err := newRecord(w, false).encode(1 << 20)
	require.NoError(t, err)
	require.Nil(t, object)
	r, err := decodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, w, r.worker())
	require.NoError(t, checkHash(r.worker()))

	w.Code = `import { env } from "cloudflare:workers"; export default {};`
	text, _, err = newRecord(w, false).encode(1 << 20)
	require.NoError(t, err)
	require.Contains(t, string(text), `"format":3`, "earlier processes do not have the module")
	w.Code = `import { connect } from "cloudflare:sockets"; export default { connect };`
	text, _, err = newRecord(w, false).encode(1 << 20)
	require.NoError(t, err)
	require.Contains(t, string(text), `"format":6`)
	for code, format := range map[string]string{
		`module.exports = builtin("net")`: "6", `module.exports = builtin("tls")`: "6", `module.exports = builtin("fs")`: "5",
	} {
		w.Code = `import { builtin } from "pinwheel:node"; ` + code
		text, _, err = newRecord(w, false).encode(1 << 20)
		require.NoError(t, err)
		require.Contains(t, string(text), `"format":`+format+`,`, code)
	}
	w.Code = "export default {};"

	text, object, err = newRecord(w, false).encode(10)
	require.NoError(t, err)
	require.NotContains(t, string(text), "export")
	require.Contains(t, string(object), "export")
	r, err = decodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, "acme.w."+w.Hash, r.Object)
}

func TestRecordDecodesStrictly(t *testing.T) {
	t.Parallel()
	text, _, err := newRecord(aWorker(t), false).encode(1 << 20)
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{`"format":1`, fmt.Sprintf(`"format":%d`, newestFormat()+1), fmt.Sprintf("has format %d: this process reads 1 to %d",
			newestFormat()+1, newestFormat())},
		{`"format":1`, `"format":1,"staged":true`, "it has format 1, and keys of format 2"},
		{`"format":1`, `"format":2,"tag":"` + strings.Repeat("x", 101) + `"`, "tag has 101 bytes"},
		{`"limits":`, `"secrets":["A_KEY"],"limits":`, "it has format 1, and keys of format 2"},
		{`"format":1`, `"format":1,"more":1`, `unknown field "more"`},
		{`"owner":"acme"`, `"owner":"a.b"`, `owner "a.b"`},
		{`"name":"w"`, `"name":""`, `worker ""`},
		{`"number":3`, `"number":0`, "number is 0: it is 1 or more"},
		{`"hash":"`, `"hash":"x`, "it is 64 hex digits"},
		{`"file":"w.js"`, `"file":""`, "file is empty"},
		{`"mode":"pinned"`, `"mode":""`, "mode is empty"},
		{`"mode":"pinned"`, `"mode":"turbo"`, "it is one of pinned"},
		{`"handlers":["task"]`, `"handlers":["tasks"]`, "it is one of fetch, task, scheduled"},
		{`"vars":{"A"`, `"vars":{"1"`, "vars.1 is no name"},
		{`"bundle":`, `"object":"x","bundle":`, "either a bundle or an object"},
		{`"bundle":{`, `"bundle":null,"x":{`, "unknown field"},
	} {
		require.Contains(t, string(text), c.old)
		_, err := decodeRecord([]byte(strings.Replace(string(text), c.old, c.new, 1)))
		require.ErrorContains(t, err, c.want)
	}
	_, err = decodeRecord(append(text, '1'))
	require.Error(t, err)
}

// Whoever adds a field to workers.Spec adds it to hashed too: else a deploy that changes nothing else would be taken
// for // the same version.
func TestHashCoversEachFieldOfASpec(t *testing.T) {
	t.Parallel()
	base := bundle.Bundle{Code: "a", File: "b"}
	seen := map[string]string{}
	note := func(field string, b bundle.Bundle) {
		h, err := b.Hash()
		require.NoError(t, err)
		require.NotContains(t, seen, h, "%s has no part in the hash", field)
		seen[h] = field
		text, err := json.Marshal(record{Mode: b.Mode, Spec: b.Spec})
		require.NoError(t, err)
		var r record
		require.NoError(t, json.Unmarshal(text, &r))
		r.Spec.Mode = r.Mode
		require.Equal(t, b.Spec, r.Spec, "%s has no place in the record", field)
	}
	note("none", base)
	var each func(v reflect.Value, b *bundle.Bundle)
	each = func(v reflect.Value, b *bundle.Bundle) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch f.Kind() {
			case reflect.Struct:
				each(f, b)
				continue
			case reflect.String:
				f.SetString("persistent")
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(100 * time.Millisecond))
			case reflect.Float64:
				f.SetFloat(3)
			case reflect.Map:
				value := reflect.New(f.Type().Elem()).Elem()
				if value.Kind() == reflect.String {
					value.SetString("b")
				}
				f.Set(reflect.MakeMap(f.Type()))
				f.SetMapIndex(reflect.ValueOf("A"), value)
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			default:
				t.Fatalf("%s is a %s: this test does not know how to set it", name, f.Kind())
			}
			note(name, *b)
			f.SetZero()
		}
	}
	each(reflect.ValueOf(&base.Spec).Elem(), &base)
}

func FuzzDecodeRecord(f *testing.F) {
	text, _, err := newRecord(aWorker(f), false).encode(1 << 20)
	require.NoError(f, err)
	f.Add(text)
	text, _, err = newRecord(aWorker(f), false).encode(10)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"format":1,"bundle":{"code":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeRecord(text)
		if err != nil {
			return
		}
		w := r.worker()
		require.True(t, events.ValidName(w.Owner) && events.ValidName(w.Name))
		require.NotEmpty(t, w.Version)
		_, err = json.Marshal(r)
		require.NoError(t, err)
		_ = checkHash(w)
	})
}

// bucketEntry stands for an entry of the bucket of deployments.
type bucketEntry struct {
	jetstream.KeyValueEntry
	key   string
	value []byte
}

func (s bucketEntry) Key() string        { return s.key }
func (s bucketEntry) Value() []byte      { return s.value }
func (s bucketEntry) Revision() uint64   { return 7 }
func (s bucketEntry) Created() time.Time { return time.Unix(1, 0) }

func FuzzDecodeDeployment(f *testing.F) {
	const split = `"split":[{"version":"1-0123456789ab","percent":90},{"version":"2-0123456789ab","percent":10}]`
	for _, text := range []string{
		`{"format":1,"owner":"acme","name":"w","seen":3,"number":2,` + split + `,"aliases":{"next":"2-0123456789ab"},"by":"ada","message":"m","at":"2026-01-02T15:04:05Z"}`,
		`{"format":2,"owner":"acme","name":"w","seen":3,"number":2,` + split + `,"before":[{"version":"1-0123456789ab","percent":100}],` +
			`"rollout":{"id":2,"steps":[{"percent":10,"forMs":1000}],"step":0,"guard":{"failures":2},"state":"running"},"at":"2026-01-02T15:04:05Z"}`,
		`{"format":1,"owner":"acme","name":"w","seen":3,"number":1,"split":[],"at":"2026-01-02T15:04:05Z"}`,
		`{"format":1,"owner":"beta","name":"w","number":1}`, `{"format":9}`, `{"format":1} {}`, `[]`, ``,
	} {
		f.Add([]byte(text), "acme.w")
	}
	f.Add([]byte(`{"format":1,"number":1}`), ".")
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		d, err := decodeDeployment(bucketEntry{key: key, value: text})
		if err != nil {
			require.Zero(t, d)
			return
		}
		require.True(t, d.exists())
		require.EqualValues(t, 7, d.revision)
		require.Equal(t, time.Unix(1, 0), d.Stored)
		require.NoError(t, d.Validate())
		owner, name, ok := strings.Cut(key, ".")
		require.True(t, ok && events.ValidName(owner) && events.ValidName(name), "%q is no worker", key)
		// What a process changes, it can store and read again.
		again, err := json.Marshal(deploymentRecord{deploymentFormat2, owner, name, d.seen, d.Deployment})
		require.NoError(t, err)
		back, err := decodeDeployment(bucketEntry{key: key, value: again})
		require.NoError(t, err)
		require.True(t, d.At.Equal(back.At))
		back.At = d.At // another location of the same time
		require.Equal(t, d.seen, back.seen)
		require.Equal(t, d.Candidate(), back.Candidate())
		require.Equal(t, d.Base(), back.Base())
		for _, bad := range []string{"", "why"} {
			next, err := Advance(d.Deployment, bad)(workers.Installation{Deployment: d.Deployment}, nil)
			if err == nil && d.Candidate().Version != "" {
				require.NoError(t, next.Validate())
			}
		}
	})
}
