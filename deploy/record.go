package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
)

// recordFormat is the version of the record's layout. A process that reads another skips the record.
const recordFormat = 1

// record is one version of a worker as it stands in the KV bucket.
type record struct {
	Format     int               `json:"format"`
	Owner      string            `json:"owner"`
	Name       string            `json:"name"`
	Number     int               `json:"number"`
	Hash       string            `json:"hash"`
	Mode       events.Mode       `json:"mode"`
	Handlers   []string          `json:"handlers"`
	File       string            `json:"file"`
	Vars       map[string]string `json:"vars,omitempty"`
	Queues     map[string]string `json:"queues,omitempty"`
	Limits     events.Limits     `json:"limits"`
	Retries    events.Retries    `json:"retries"`
	Lifetime   *events.Lifetime  `json:"lifetime,omitempty"`
	OnDead     *events.DeadHook  `json:"onDeadLetter,omitempty"`
	Idempotent bool              `json:"idempotent,omitempty"`
	Schedules  []events.Schedule `json:"schedules,omitempty"`
	DeployedAt time.Time         `json:"deployedAt"`

	// Either the bundle itself, or the name of the object that holds it.
	Bundle *payload `json:"bundle,omitempty"`
	Object string   `json:"object,omitempty"`
}

// payload is the part of a version that may be large, and the content of an object.
type payload struct {
	Code      string `json:"code"`
	SourceMap string `json:"sourceMap,omitempty"`
}

func newRecord(w *events.Worker) *record {
	r := &record{
		Format: recordFormat, Owner: w.Owner, Name: w.Name, Number: w.Number, Hash: w.Hash, Mode: w.Mode, File: w.File,
		Vars: w.Vars, Queues: w.Queues, Limits: w.Limits, Retries: w.Retries, OnDead: w.OnDead, Idempotent: w.Idempotent, Schedules: w.Schedules, DeployedAt: w.DeployedAt.UTC(),
		Bundle: &payload{w.Code, string(w.SourceMap)},
	}
	if w.Lifetime != (events.Lifetime{}) {
		r.Lifetime = &w.Lifetime
	}
	for _, k := range w.Handlers {
		r.Handlers = append(r.Handlers, k.String())
	}
	return r
}

// encode makes the record's bytes, and, when they would be more than limit, the object that they refer to.
func (r *record) encode(limit int) (text, object []byte, err error) {
	if !utf8.ValidString(r.Bundle.Code) || !utf8.ValidString(r.Bundle.SourceMap) {
		return nil, nil, errors.New("code and source map must be UTF-8: JSON would change them")
	}
	if text, err = json.Marshal(r); err != nil {
		return nil, nil, fmt.Errorf("encode record: %w", err)
	}
	if len(text) <= limit {
		return text, nil, nil
	}
	if object, err = json.Marshal(r.Bundle); err != nil {
		return nil, nil, fmt.Errorf("encode object: %w", err)
	}
	small := *r
	small.Bundle, small.Object = nil, objectName(r.Owner, r.Name, r.Hash)
	if text, err = json.Marshal(small); err != nil {
		return nil, nil, fmt.Errorf("encode record: %w", err)
	}
	return text, object, nil
}

func (r *record) lifetime() events.Lifetime {
	if r.Lifetime == nil {
		return events.Lifetime{}
	}
	return *r.Lifetime
}

// objectName is where the code of a version lies. It belongs to one worker, so that it can be deleted with it.
func objectName(owner, name, hash string) string { return owner + "." + name + "." + hash }

// decodeRecord reads a record and checks all of it but the code's hash. The error says which field is wrong.
func decodeRecord(text []byte) (*record, error) {
	// The format first: what else a record of another format may hold is not known here.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("worker record: %w", err)
	}
	if head.Format != recordFormat {
		return nil, fmt.Errorf("worker record has format %d: this process reads %d", head.Format, recordFormat)
	}
	r := &record{}
	if err := strictDecode(text, r); err != nil {
		return nil, fmt.Errorf("worker record: %w", err)
	}
	return r, r.validate()
}

// strictDecode refuses unknown fields and anything after the value.
func strictDecode(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func (r *record) validate() error {
	if err := events.CheckName("owner", r.Owner); err != nil {
		return fmt.Errorf("worker record: %w", err)
	}
	if err := events.CheckName("worker", r.Name); err != nil {
		return fmt.Errorf("worker record: %w", err)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("worker record of %s/%s: "+format, append([]any{r.Owner, r.Name}, args...)...)
	}
	switch {
	case r.Number < 1:
		return fail("number is %d: it is 1 or more", r.Number)
	case !isHash(r.Hash):
		return fail("hash is %q: it is 64 hex digits", r.Hash)
	case r.File == "":
		return fail("file is empty")
	case r.Mode == "":
		return fail("mode is empty")
	case (r.Object == "") == (r.Bundle == nil):
		return fail("it has either a bundle or an object")
	case r.Object != "" && r.Object != objectName(r.Owner, r.Name, r.Hash):
		return fail("object is %q: it is %q", r.Object, objectName(r.Owner, r.Name, r.Hash))
	}
	if err := r.manifest().Validate(); err != nil {
		return fail("%w", err)
	}
	for _, h := range r.Handlers {
		if _, err := events.ParseKind(h); err != nil {
			return fail("%w", err)
		}
	}
	return nil
}

func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (r *record) manifest() Manifest {
	return Manifest{Mode: r.Mode, Vars: r.Vars, Queues: r.Queues, Limits: r.Limits, Retries: r.Retries, Lifetime: r.lifetime(), OnDead: r.OnDead, Idempotent: r.Idempotent, Schedules: r.Schedules}
}

// worker makes the worker of a validated record. Without a bundle it has no code.
func (r *record) worker() *events.Worker {
	w := &events.Worker{
		Owner: r.Owner, Name: r.Name, Version: version(r.Number, r.Hash), Number: r.Number, Hash: r.Hash,
		Mode: r.Mode, File: r.File, Vars: r.Vars, Queues: r.Queues, Limits: r.Limits, Retries: r.Retries, Lifetime: r.lifetime(), OnDead: r.OnDead, Idempotent: r.Idempotent, Schedules: r.Schedules,
		DeployedAt: r.DeployedAt,
	}
	for _, h := range r.Handlers {
		k, _ := events.ParseKind(h) // validated
		w.Handlers = append(w.Handlers, k)
	}
	if r.Bundle != nil {
		w.Code = r.Bundle.Code
		if r.Bundle.SourceMap != "" {
			w.SourceMap = []byte(r.Bundle.SourceMap)
		}
	}
	return w
}

// checkHash makes sure that the code is the one that was deployed.
func checkHash(w *events.Worker) error {
	b := Bundle{Code: w.Code, File: w.File, SourceMap: w.SourceMap, Manifest: manifestOf(w)}
	hash, err := b.Hash()
	if err != nil {
		return err
	}
	if hash != w.Hash {
		return fmt.Errorf("worker record of %s: code and manifest have hash %s, and it says %s", w.Target(), hash, w.Hash)
	}
	return nil
}

func manifestOf(w *events.Worker) Manifest {
	return Manifest{Mode: w.Mode, Vars: w.Vars, Queues: w.Queues, Limits: w.Limits, Retries: w.Retries, Lifetime: w.Lifetime, OnDead: w.OnDead, Idempotent: w.Idempotent, Schedules: w.Schedules}
}
