package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/cron"
)

// MaxBytes is the longest text that Parse should be given, except for a package.json.
const MaxBytes = 512 << 10

// Manifest is what a document says.
type Manifest struct {
	Name string // of the worker; "" = it does not say
	Main string // path of the entry point from the directory of the manifest, as written; "" = it does not say
	// FileRoutes is the path of the directory whose files have routes, as written; "" = none has
	FileRoutes string
	workers.Spec
	Plain []string // vars that look like secrets and are none
	Node  bool     // Node's modules can be imported, and Buffer, process and global are there
	// Files says by extension what an import of a file that is no code gives
	Files   map[string]FileKind
	Ignored []string // keys that say nothing about how a worker runs here, in their order
	Notes   []string // what other keys mean here
	foreignPages

	compatible map[string]bool // the keys of wrangler that say of Cloudflare's changes what makes a difference here

	d *decoder
}

// Format is a format of documents.
type Format string

// The formats.
const (
	JSON         Format = "json"          // Pinwheel's own, with comments and trailing commas
	YAML         Format = "yaml"          // the same keys in YAML
	Package      Format = "package.json"  // Pinwheel's own below the key pinwheel
	Buntime      Format = "buntime"       // manifest.yaml
	WranglerJSON Format = "wrangler.json" // with comments and trailing commas
	WranglerTOML Format = "wrangler.toml"
)

// Lookup returns the value of a variable of the deployer's environment. The error says why there is none.
type Lookup func(name string) (string, error)

// Parse reads a document. Check validates what it says. file is its name for messages. lookup is for ${NAME} in the
// vars of Pinwheel's own manifests; nil leaves them as they are. The error is a *SourceError.
//
// Parse returns nil without an error for a package.json without the key pinwheel.
func Parse(format Format, file string, text []byte, lookup Lookup) (*Manifest, error) {
	doc := &document{file: file, text: text, noun: "the manifest"}
	root, err := read(doc, format)
	if root == nil || err != nil {
		return nil, err
	}
	m := &Manifest{d: newDecoder(doc)}
	switch format {
	case Buntime:
		err = m.fromBuntime(root)
	case WranglerJSON, WranglerTOML:
		err = m.fromWrangler(root)
	default:
		err = m.fromNative(root, lookup)
	}
	if err != nil {
		return nil, err
	}
	if m.HTTP != nil && m.HTTP.Base == "/" {
		m.HTTP.Base = "" // every path begins with it
	}
	if m.Name != "" {
		if err := events.CheckName("worker", m.Name); err != nil {
			return nil, m.Fault("name", "name is no worker's: %v", err)
		}
	}
	return m, nil
}

func read(doc *document, format Format) (*node, error) {
	switch format {
	case YAML, Buntime:
		return doc.readYAML()
	case WranglerTOML:
		return doc.readTOML()
	case Package:
		doc.noun = "package.json"
		root, err := doc.readJSON()
		if err != nil || root.kind != object {
			return nil, err
		}
		doc.noun = "the manifest"
		return root.member("pinwheel"), nil
	}
	return doc.readJSON()
}

// Check validates all that the manifest says, in spec, where the source may have added something. The error is a
// *SourceError at the place of the fault.
func (m *Manifest) Check(spec workers.Spec) error {
	err := Validate(spec)
	if err == nil {
		err = checkPlain(m.Vars, m.JSON, m.Plain)
	}
	if err != nil {
		return m.d.failAt(err)
	}
	return nil
}

// Refuse puts err, whose text begins with the path of a field, at the place of this field, or of the nearest object
// around it.
func (m *Manifest) Refuse(err error) error { return m.d.failAt(err) }

// Place puts a text that begins with the path of a field of this manifest at the place of this field, or of the nearest
// object around it. It returns nil for other texts.
func (m *Manifest) Place(text string) *SourceError {
	field, _, _ := strings.Cut(text, " ")
	key, _, _ := strings.Cut(field, ".")
	if _, ok := m.d.at[key]; !ok {
		return nil
	}
	return m.Fault(field, "%s", text)
}

// Fault is an error at the place of a field, for example "main", or of the nearest object around it.
func (m *Manifest) Fault(field, format string, args ...any) *SourceError {
	return Fault(m.d.file, m.d.text, m.d.place(field), format, args...)
}

// Validate checks all of a specification. The error begins with the path of the field that is wrong.
func Validate(spec workers.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	for i, s := range spec.Schedules {
		if _, err := cron.Parse(s.Cron, s.TimeZone); err != nil {
			return fmt.Errorf("schedules[%d].%w", i, err)
		}
	}
	return nil
}

// native is Pinwheel's own manifest. A field that is added to workers.Spec is a key of it at once.
type native struct {
	Schema     string `json:"$schema,omitempty"` // for editors
	Name       string `json:"name,omitempty"`
	Main       string `json:"main,omitempty"`
	FileRoutes string `json:"fileRoutes,omitempty"`
	workers.Spec
	Plain []string `json:"plain,omitempty"`
	Node  bool     `json:"node,omitempty"` // only a bundle depends on it: it is not stored
}

// later are the keys of the design whose features do not exist yet. A key that workers.Spec has is never looked up.
var later = map[string]string{
	"record": "runs are not recorded yet",
	"trace":  "there are no traces yet",
	"schema": "payloads are not checked yet: check them in the handler",
	"tool":   "workers are no tools of agents yet",
	"logs":   "there are no settings of logs yet",
}

// keepJSON takes the vars that are no strings from the decoder.
func (m *Manifest) keepJSON() {
	if len(m.d.json) > 0 {
		m.JSON = m.d.json
	}
	if len(m.Vars) == 0 {
		m.Vars = nil
	}
}

func (m *Manifest) fromNative(root *node, lookup Lookup) error {
	m.d.other = func(full string, k member) (bool, error) {
		if why, ok := later[full]; ok {
			return false, m.d.fail(k.at, "key %q: %s", full, why)
		}
		return false, nil
	}
	var n native
	m.d.json = map[string]string{}
	if err := m.d.value("", root, reflect.ValueOf(&n).Elem()); err != nil {
		return err
	}
	m.Name, m.Main, m.FileRoutes, m.Spec = n.Name, n.Main, n.FileRoutes, n.Spec
	m.Plain, m.Node = n.Plain, n.Node
	m.keepJSON()
	for i := range m.Schedules {
		m.Schedules[i].Name = cmp.Or(m.Schedules[i].Name, strconv.Itoa(i+1))
	}
	return m.expandVars(lookup)
}
