package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Formats of records. A process skips a record whose format it does not know, and goes on with what it has. So a record
// has the first format that has all of its keys: earlier processes read as much as they can.
const (
	format1 = 1
	format2 = 2 // adds secrets, concurrency, jsonVars, http, assets, staged, tag and message
	format3 = 3 // adds kv, objects, services, version, nats, queue and batch; bundles that import cloudflare:workers
	format4 = 4 // adds trace
	format5 = 5 // adds bundles that import pinwheel:node
	format6 = 6 // adds modules; bundles with cloudflare:sockets, or node:net, tls, dns or http
)

// newestFormat is the newest format that this process reads.
func newestFormat() int { return max(format6, workers.NewestBindingsFormat()) }

// record is one version of a worker, as the KV bucket has it.
type record struct {
	Format   int           `json:"format"`
	Owner    string        `json:"owner"`
	Name     string        `json:"name"`
	Number   int           `json:"number"`
	Hash     string        `json:"hash"`
	Mode     workers.Mode  `json:"mode"` // hides that of Spec: format 1 has it before the handlers
	Handlers []events.Kind `json:"handlers"`
	Queue    bool          `json:"queue,omitempty"`
	File     string        `json:"file"`
	workers.Spec
	DeployedAt time.Time `json:"deployedAt"`

	// Staged: a deployment has to name the version before it runs events.
	Staged  bool   `json:"staged,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Message string `json:"message,omitempty"`

	// Either the bundle itself, or the name of the object that has it.
	Bundle *payload `json:"bundle,omitempty"`
	Object string   `json:"object,omitempty"`

	// Modules are those of WebAssembly. Their bytes are files of the owner.
	Modules []ModuleRef `json:"modules,omitempty"`

	revision uint64 // of its entry in the bucket
	text     []byte // of the entry, if Bundle is not decoded
}

// payload is the part of a version that may be large. It is also the content of an object.
type payload struct {
	Code      string `json:"code"`
	SourceMap string `json:"sourceMap,omitempty"`
}

func newRecord(w *workers.Worker, staged bool) *record {
	r := &record{
		Owner: w.Owner, Name: w.Name, Number: w.Number, Hash: w.Hash, Mode: w.Mode, Handlers: w.Handlers, Queue: w.Queue,
		File: w.File,
		Spec: w.Spec, DeployedAt: w.DeployedAt.UTC(), Bundle: &payload{w.Code, string(w.SourceMap)},
		Staged: staged, Tag: w.Tag, Message: w.Message, Modules: ModuleRefs(w.Modules),
	}
	r.Format = r.leastFormat()
	if bundle.ImportsRuntime(w.Code) {
		r.Format = max(r.Format, format3) // processes that do not read it have no such module
	}
	if bundle.ImportsNode(w.Code) {
		r.Format = max(r.Format, format5)
	}
	if bundle.ImportsSockets(w.Code) {
		r.Format = max(r.Format, format6)
	}
	return r
}

// leastFormat is the first format that has the keys of r.
func (r *record) leastFormat() int {
	format := max(format1, r.Bindings.Format())
	switch {
	case len(r.Modules) > 0:
		return max(format, format6)
	case r.Trace != nil:
		return max(format, format4)
	case r.Queue || r.Batch != nil:
		return max(format, format3)
	case r.Staged || r.Tag != "" || r.Message != "" || len(r.Secrets) > 0 || r.Concurrency > 0 || r.HTTP != nil ||
		r.Assets != nil:
		return max(format, format2)
	}
	return format
}

// encode makes the bytes of the record. If they would be more than limit, it also makes the object to which they refer.
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

// objectName names the object of a version. It belongs to one worker, so that it can be deleted with it.
func objectName(owner, name, hash string) string { return owner + "." + name + "." + hash }

// summary is a record whose bundle is not decoded. Lists need no code, which is most of a record.
type summary struct {
	record
	Bundle *skipped `json:"bundle"` // hides that of record
}

// skipped is a JSON value that is not decoded.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// decodeSummary reads a record without its bundle, and checks all of it except the hash. The error says which field is
// wrong.
func decodeSummary(text []byte) (*record, error) {
	s := &summary{}
	if err := decodeFormat(text, s); err != nil {
		return nil, err
	}
	r := &s.record
	if s.Bundle != nil {
		r.Bundle, r.text = &payload{}, text
	}
	r.Spec.Mode = r.Mode
	return r, r.validate()
}

// readBundle reads the bundle of a record that decodeSummary has read.
func (r *record) readBundle() error {
	if r.text == nil {
		return nil
	}
	var has struct {
		Bundle *payload `json:"bundle"`
	}
	if err := json.Unmarshal(r.text, &has); err != nil {
		return fmt.Errorf("worker record of %s/%s: %w", r.Owner, r.Name, err)
	}
	r.Bundle, r.text = has.Bundle, nil
	return nil
}

// decodeFormat decodes a record if this process reads its format.
func decodeFormat(text []byte, into any) error {
	// The format comes first: the fields of another format are unknown.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("worker record: %w", err)
	}
	if head.Format < format1 || head.Format > newestFormat() {
		return fmt.Errorf("worker record has format %d: this process reads %d to %d", head.Format, format1, newestFormat())
	}
	if err := strictDecode(text, into); err != nil {
		return fmt.Errorf("worker record: %w", err)
	}
	return nil
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
	case r.Format < r.leastFormat():
		return fail("it has format %d, and keys of format %d", r.Format, r.leastFormat())
	case r.Number < 1:
		return fail("number is %d: it is 1 or more", r.Number)
	case !assets.IsHash(r.Hash):
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
	for _, err := range []error{
		manifest.Validate(r.Spec), events.CheckText("tag", r.Tag, workers.MaxTag),
		events.CheckText("message", r.Message, events.MaxNote), checkModuleRefs(r.Modules),
	} {
		if err != nil {
			return fail("%w", err)
		}
	}
	return nil
}

// hashDigits is the number of digits of the hash in a version.
const hashDigits = 12

// version is "<number>-<first 12 hex digits of the hash>".
func version(number int, hash string) string { return fmt.Sprintf("%d-%s", number, hash[:hashDigits]) }

// version is the name of the version.
func (r *record) version() string { return version(r.Number, r.Hash) }

// stored is what decides which version runs.
func (r *record) stored() storedVersion {
	return storedVersion{version: r.version(), number: r.Number, staged: r.Staged, at: r.DeployedAt, revision: r.revision}
}

// worker makes the worker of a validated record. Without a bundle it has no code.
func (r *record) worker() *workers.Worker {
	w := &workers.Worker{
		Owner: r.Owner, Name: r.Name, Version: version(r.Number, r.Hash), Number: r.Number, Hash: r.Hash,
		Spec: r.Spec, Handlers: r.Handlers, Queue: r.Queue, File: r.File, DeployedAt: r.DeployedAt, Tag: r.Tag,
		Message: r.Message,
	}
	if r.Bundle != nil {
		w.Code = r.Bundle.Code
		if r.Bundle.SourceMap != "" {
			w.SourceMap = []byte(r.Bundle.SourceMap)
		}
	}
	return w
}

// checkHash checks that code and manifest are those that were deployed.
func checkHash(w *workers.Worker) error {
	b := bundle.Bundle{Code: w.Code, File: w.File, SourceMap: w.SourceMap, Spec: w.Spec, Modules: w.Modules}
	hash, err := b.Hash()
	if err != nil {
		return err
	}
	if hash != w.Hash {
		return fmt.Errorf("worker record of %s: code and manifest have hash %s, and it says %s", w.Target(), hash, w.Hash)
	}
	return nil
}
