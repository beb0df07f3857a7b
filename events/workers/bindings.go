package workers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
)

// Bindings are what a worker finds in env. Each kind of binding is a map from the name in env to a value.
//
// A new kind needs a field here and its row in bindingKinds. The manifest and its schema, the stored record and its
// format, the hash of a version, the merging of what a deploy adds, the checks and the budget of a run follow from
// these two. isolates/bindings says what else a kind has.
type Bindings struct {
	Vars map[string]string `json:"vars,omitempty"` // env.NAME is this string
	// JSON are vars that are no strings: env.NAME is the value of this JSON text. In a manifest they stand in vars, too.
	JSON map[string]string `json:"jsonVars,omitempty" manifest:"-"`
	// env.NAME.send(…) publishes a task to this worker of the same owner
	Queues map[string]string `json:"queues,omitempty"`
	KV     map[string]string `json:"kv,omitempty"` // env.NAME is this namespace of the owner's keys and values
	// Objects: env.NAME is this bucket of the owner's objects.
	Objects map[string]string `json:"objects,omitempty"`
	// Services: env.NAME calls this worker of the same owner: WORKER, or WORKER#ENTRYPOINT.
	Services map[string]string `json:"services,omitempty"`
	// VersionBinding is the name in env of what describes the version that runs; "" = none.
	VersionBinding string `json:"version,omitempty"`
	// NATS: env.NAME publishes to these subjects, and asks.
	NATS map[string]NATSSubjects `json:"nats,omitempty"`
}

// Binding is one name in env.
type Binding struct {
	Kind BindingKind
	Name string // in env
	// Value is a text for BindingVar, a JSON text for BindingJSON, the name of a worker for BindingQueue, a namespace for
	// BindingKV, a bucket for BindingObjects, a ServiceTarget for BindingService, "" for BindingVersion, NATSSubjects as
	// JSON for BindingNATS.
	Value string
}

// BindingKind is the key of a kind of binding in the stored record, and in the manifest.
type BindingKind string

// The kinds of bindings.
const (
	BindingVar   BindingKind = "vars"
	BindingJSON  BindingKind = "jsonVars" // of the stored record: in the manifest it is "vars"
	BindingQueue BindingKind = "queues"
	BindingKV    BindingKind = "kv"
	// BindingVersion has one name at most.
	BindingVersion BindingKind = "version"
	BindingNATS    BindingKind = "nats"
	BindingCache   BindingKind = "cache" // caches, which every worker has: no manifest names it

	BindingObjects BindingKind = "objects"
	BindingService BindingKind = "services"
)

// bindingKind describes a kind of binding.
type bindingKind struct {
	kind   BindingKind
	noun   string // in messages
	of     func(*Bindings) values
	check  func(values map[string]string) error
	format int    // of worker records: the first that has the kind. Processes that do not know it skip such a version
	budget Budget // of the calls of its methods; zero for a kind whose calls are bounded otherwise, or that has none
}

// bindingKinds has a row for each kind, in the order of the fields of Bindings.
var bindingKinds = [...]bindingKind{
	{BindingVar, "var", func(b *Bindings) values { return (*textValues)(&b.Vars) }, checkVars, 1, Budget{}},
	{BindingJSON, "var", func(b *Bindings) values { return (*textValues)(&b.JSON) }, checkJSON, 2, Budget{}},
	{BindingQueue, "queue", func(b *Bindings) values { return (*textValues)(&b.Queues) }, names(BindingQueue, "worker"), 1,
		Budget{}},
	{BindingKV, "KV namespace", func(b *Bindings) values { return (*textValues)(&b.KV) }, names(BindingKV, "namespace"), 3,
		Budget{1000, 10}},
	{BindingObjects, "bucket", func(b *Bindings) values { return (*textValues)(&b.Objects) },
		names(BindingObjects, "bucket"), 3, Budget{100, 3}},
	{BindingService, "service", func(b *Bindings) values { return (*textValues)(&b.Services) }, checkServices, 3,
		Budget{}},
	{BindingVersion, "version", func(b *Bindings) values { return (*soleName)(&b.VersionBinding) },
		func(map[string]string) error { return nil }, 3, Budget{}},
	{BindingNATS, "NATS binding", func(b *Bindings) values { return (*natsValues)(&b.NATS) }, checkNATSTexts, 3,
		Budget{50, 6}},
}

// cacheBudget is that of BindingCache, which has no row.
var cacheBudget = Budget{1000, 10}

// Budget bounds the calls of one kind of binding in one run.
type Budget struct {
	Calls  int // in all
	AtOnce int // the others wait
}

// Budget bounds the calls of a kind's methods in a run. It is zero for a kind without methods, for queues, which have
// Limits.Sends, and for services, which a ServiceTree bounds.
func (k BindingKind) Budget() Budget {
	if k == BindingCache {
		return cacheBudget
	}
	for _, row := range bindingKinds {
		if row.kind == k {
			return row.budget
		}
	}
	return Budget{}
}

// NewestBindingsFormat is the format of worker records that has all kinds of bindings.
func NewestBindingsFormat() (format int) {
	for _, k := range bindingKinds {
		format = max(format, k.format)
	}
	return format
}

// Format is the first format of worker records that has the kinds of b; 0 = there are none.
func (b Bindings) Format() (format int) {
	for _, k := range bindingKinds {
		if len(k.of(&b).get()) > 0 {
			format = max(format, k.format)
		}
	}
	return format
}

// values are the bindings of one kind.
type values interface {
	get() map[string]string // each name in env with its Binding.Value; not to be changed
	set(values map[string]string)
}

// textValues are the values of a kind that has a text for each name.
type textValues map[string]string

func (v *textValues) get() map[string]string       { return *v }
func (v *textValues) set(values map[string]string) { *v = values }

// soleName is the name of a binding that a worker has at most once, and that has no value.
type soleName string

func (n *soleName) get() map[string]string {
	if *n == "" {
		return nil
	}
	return map[string]string{string(*n): ""}
}

func (n *soleName) set(values map[string]string) {
	for name := range values {
		*n = soleName(name)
	}
}

const (
	// maxEnvName is the longest name in env, bytes.
	// maxVars bounds all vars of a worker together, bytes: every process gets them with every version.
	maxVars = 128 << 10
)

// Env lists the bindings, sorted by kind and name.
func (b Bindings) Env() []Binding {
	var list []Binding
	for _, k := range bindingKinds {
		values := k.of(&b).get()
		for _, name := range slices.Sorted(maps.Keys(values)) {
			list = append(list, Binding{k.kind, name, values[name]})
		}
	}
	return list
}

// Find returns the binding of this kind and name, and false if there is none.
func (b Bindings) Find(kind BindingKind, name string) (Binding, bool) {
	for _, k := range bindingKinds {
		if k.kind == kind {
			value, ok := k.of(&b).get()[name]
			return Binding{kind, name, value}, ok
		}
	}
	return Binding{}, false
}

// AllVars are the vars of both kinds: strings, and those that are JSON as their texts.
func (b Bindings) AllVars() map[string]string {
	all := make(map[string]string, len(b.Vars)+len(b.JSON))
	maps.Copy(all, b.Vars)
	maps.Copy(all, b.JSON)
	return all
}

// With is b with the bindings of over added. A name in over replaces that name in b, whatever its kind there.
func (b Bindings) With(over Bindings) Bindings {
	var merged Bindings
	for _, k := range bindingKinds {
		values := map[string]string{}
		for name, value := range k.of(&b).get() {
			if !over.has(name) && (k.kind != BindingVersion || over.VersionBinding == "") {
				values[name] = value
			}
		}
		maps.Copy(values, k.of(&over).get())
		if len(values) > 0 { // no binding is nil, as in a record
			k.of(&merged).set(values)
		}
	}
	return merged
}

func (b Bindings) has(name string) bool {
	for _, k := range bindingKinds {
		if _, ok := k.of(&b).get()[name]; ok {
			return true
		}
	}
	return false
}

// Validate returns an error that begins with the path of the binding that is wrong, for example "vars.1X is …".
func (b Bindings) Validate() error {
	for i, k := range bindingKinds {
		values := k.of(&b).get()
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := events.CheckEnvName(name); err != nil {
				return fmt.Errorf("%s.%w", k.kind, err)
			}
			for _, other := range bindingKinds[i+1:] {
				if _, both := other.of(&b).get()[name]; both {
					return fmt.Errorf("%s.%s is a %s too: a name in env is one thing", k.kind, name, other.noun)
				}
			}
		}
		if err := k.check(values); err != nil {
			return err
		}
	}
	return nil
}

func checkVars(values map[string]string) error {
	total := 0
	for name, value := range values {
		total += len(name) + len(value)
	}
	if total > maxVars {
		return fmt.Errorf("vars have %d bytes in all: at most %d are allowed", total, maxVars)
	}
	return nil
}

func checkJSON(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !json.Valid([]byte(values[name])) {
			return fmt.Errorf("vars.%s is no JSON text", name)
		}
	}
	return checkVars(values)
}

// names checks a kind whose values are the names of something.
func names(kind BindingKind, noun string) func(values map[string]string) error {
	return func(values map[string]string) error {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := events.CheckName(noun, values[name]); err != nil {
				return fmt.Errorf("%s.%s is no %s: %w", kind, name, noun, err)
			}
		}
		return nil
	}
}

func checkServices(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, err := events.ParseServiceTarget(values[name]); err != nil {
			return fmt.Errorf("services.%s is no service, which is WORKER or WORKER#ENTRYPOINT: %w", name, err)
		}
	}
	return nil
}
