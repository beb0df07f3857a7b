package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Hash is the SHA-256 over bundle and manifest, in hex. Two workers with the same hash behave the same. The hash covers
// the source map, because stacks must name the right lines also after an edit that changes only comments.
func (b *Bundle) Hash() (string, error) {
	manifest, err := canonical(b.Spec)
	if err != nil {
		return "", fmt.Errorf("hash bundle: %w", err)
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(b.File), []byte(b.Code), b.SourceMap, manifest} {
		// The length keeps the parts apart.
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part) // a hash.Hash never fails
	}
	for _, m := range b.Modules {
		fmt.Fprintf(h, "wasm:%s", m.Hash)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashed is workers.Spec as it enters the hash. The names and the order of its fields never change, and a new field is
// left out when it is zero: a worker that was deployed before there was such a field keeps its hash.
type hashed struct {
	Mode workers.Mode
	hashedBindings
	Limits     workers.Limits
	Retries    workers.Retries
	Lifetime   workers.Lifetime   `json:",omitzero"`
	OnDead     *events.DeadHook   `json:",omitempty"`
	Idempotent bool               `json:",omitempty"`
	Schedules  []workers.Schedule `json:",omitempty"`
	Secrets    []string           `json:",omitempty"` // sorted

	Concurrency int             `json:",omitempty"`
	HTTP        *workers.HTTP   `json:",omitempty"`
	Assets      *workers.Assets `json:",omitempty"`
	Batch       *workers.Batch  `json:",omitempty"`
	Trace       *workers.Trace  `json:",omitempty"`

	BinaryType workers.BinaryType `json:",omitempty"`
	Sources    []workers.Source   `json:",omitempty"`
}

type hashedBindings struct {
	Vars   map[string]string `json:",omitempty"`
	Queues map[string]string `json:",omitempty"`
	JSON   map[string]string `json:",omitempty"`
	KV     map[string]string `json:",omitempty"`

	Objects        map[string]string               `json:",omitempty"`
	VersionBinding string                          `json:",omitempty"`
	NATS           map[string]workers.NATSSubjects `json:",omitempty"`
	Services       map[string]string               `json:",omitempty"`

	// More has the kinds that have no field here, by kind and name.
	More map[workers.BindingKind]map[string]string `json:",omitempty"`
}

// inFields are the kinds that have a field in hashedBindings. The list must not change, or the hashes would.
var inFields = []workers.BindingKind{
	workers.BindingVar, workers.BindingQueue, workers.BindingJSON, workers.BindingKV, workers.BindingObjects,
	workers.BindingVersion, workers.BindingNATS, workers.BindingService,
}

func hashedOf(b workers.Bindings) hashedBindings {
	h := hashedBindings{b.Vars, b.Queues, b.JSON, b.KV, b.Objects, b.VersionBinding, b.NATS, b.Services, nil}
	for _, one := range b.Env() {
		if slices.Contains(inFields, one.Kind) {
			continue
		}
		if h.More == nil {
			h.More = map[workers.BindingKind]map[string]string{}
		}
		if h.More[one.Kind] == nil {
			h.More[one.Kind] = map[string]string{}
		}
		h.More[one.Kind][one.Name] = one.Value
	}
	return h
}

// canonical returns the same bytes for any two specifications that say the same.
func canonical(s workers.Spec) ([]byte, error) {
	// encoding/json sorts the keys of maps and keeps the order of fields.
	return json.Marshal(hashed{
		s.Mode.OrDefault(), hashedOf(s.Bindings), s.Limits, s.Retries, s.Lifetime, s.OnDead, s.Idempotent, s.Schedules,
		slices.Sorted(slices.Values(s.Secrets)), s.Concurrency, s.HTTP, s.Assets, s.Batch, s.Trace,
		s.BinaryType, s.Sources,
	})
}
