package workers

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/pinwheel-run/pinwheel/events"
)

// Policy is what an owner may use, beside other owners. A zero field means the value in the process's configuration.
type Policy struct {
	// Weight is the owner's share of CPU time when other owners want it too. An owner of weight 2 gets twice as much as
	// one of weight 1, which is the default.
	Weight int `json:"weight,omitempty"`
	// MaxRunning and MaxQueued bound the events of the owner that run, and that wait, in a process.
	MaxRunning int `json:"maxRunning,omitempty"`
	MaxQueued  int `json:"maxQueued,omitempty"`
	// FleetMaxRunning and FleetMaxQueued bound the same in all processes together. Each process has an equal share, at
	// least one.
	FleetMaxRunning int `json:"fleetMaxRunning,omitempty"`
	FleetMaxQueued  int `json:"fleetMaxQueued,omitempty"`
	// Calls, CallBurst and CallBytes bound what the call bridges of all processes together store for the owner: events
	// per second, events at once (by default the same number), and bytes of bodies and headers per second.
	Calls     int `json:"calls,omitempty"`
	CallBurst int `json:"callBurst,omitempty"`
	CallBytes int `json:"callBytes,omitempty"`
	// Sends and SendBytes bound what all processes together store of the tasks that its workers send to each other:
	// tasks per second (and as many at once, or CallBurst if that is more), and bytes per second. Zero means the values
	// of Calls and CallBytes, counted separately.
	Sends     int `json:"sends,omitempty"`
	SendBytes int `json:"sendBytes,omitempty"`
	// MaxIsolates and HeapMB bound its isolates in a process, in number and in memory.
	MaxIsolates int `json:"maxIsolates,omitempty"`
	HeapMB      int `json:"heapMB,omitempty"`
	// Group names owners that trust each other, such as those of one organization. Owners of the same group share
	// isolates in a process, with a context for each worker, and have the largest share of isolates and memory of all of
	// them together. "" = the owner has isolates of its own.
	Group string `json:"group,omitempty"`
	// Compilers are those that the code of its workers gets, full or baseline, within what the process has. Owners with
	// other compilers never share its isolates, nor does its group.
	Compilers Compilers `json:"compilers,omitempty"`
	// WASM lets the code of its workers have modules of WebAssembly, with the compilers full. Owners with and
	// without never share isolates.
	WASM bool `json:"wasm,omitempty"`
	// Cell says in which process its workers run: with all others, in a cell of its own, or in one with a name, whose
	// owners share it. Owners of a group that are in different cells never share isolates. "" = what the fleet has.
	Cell Cell `json:"cell,omitempty"`
	// MaxWorkers and CodeBytes bound what its people deploy by the owner API: the number of workers, and the bytes
	// of all kept versions with their source maps. Zero means DefaultMaxWorkers and DefaultCodeBytes. Deploys by the
	// fleet's user pass them.
	MaxWorkers int `json:"maxWorkers,omitempty"`
	CodeBytes  int `json:"codeBytes,omitempty"`
	// AssetBytes bounds the files that its people store by the owner API, for all kept versions: each counts its
	// bytes and 4096 more. Zero means DefaultAssetBytes. Deploys by the fleet's user pass it.
	AssetBytes int `json:"assetBytes,omitempty"`
	// KVBytes bounds the data that its workers store by KV bindings, bytes; nats-server keeps to it. Zero means
	// PINWHEEL_OWNER_KV_BYTES.
	KVBytes int `json:"kvBytes,omitempty"`
	// CacheBytes bounds what its workers keep in caches, bytes; the oldest goes first. Zero means
	// PINWHEEL_OWNER_CACHE_BYTES.
	CacheBytes int `json:"cacheBytes,omitempty"`
	// ObjectBytes bounds the data that its workers store by objects bindings, bytes; nats-server keeps to it. Zero means
	// DefaultObjectBytes.
	ObjectBytes int `json:"objectBytes,omitempty"`
	// BindingCalls bounds the calls of bindings that its workers make in a process, per second. Zero means
	// DefaultBindingCalls.
	BindingCalls int `json:"bindingCalls,omitempty"`
	// NATSPublish and NATSRequest are what its workers may publish to, and ask, by NATS bindings: patterns of subjects.
	// None = nothing.
	NATSPublish []string `json:"natsPublish,omitempty"`
	NATSRequest []string `json:"natsRequest,omitempty"`
	// Consume are the sources that its workers may have: patterns like stream:ORDERS, stream:SHOP_*:orders.>, kv:FLAGS,
	// objects:UPLOADS, subject:sensors.>, warehouse/stream:STOCK. None = nothing.
	Consume []string `json:"consume,omitempty"`
	// Runs says which of its attempts the run history keeps. "" = those that the fleet keeps.
	Runs KeepRuns `json:"runs,omitempty"`
	// Hosts are what the routes of its workers may name: "shop.acme.example", "*.acme.example" for every host below, "*"
	// for every host. None = its workers have no routes.
	Hosts []string `json:"hosts,omitempty"`
	// Paused are the workers whose events do not start, by name, or EveryWorker. Resuming removes the entry.
	Paused map[string]Pause `json:"paused,omitempty"`
	// Ceilings bound the limits of its workers. A worker that asks for more gets the ceiling.
	Ceilings Limits `json:"ceilings,omitzero"`
}

// What an owner without a policy may deploy by the owner API.
const (
	DefaultMaxWorkers = 100
	DefaultCodeBytes  = 256 << 20
	DefaultAssetBytes = 1 << 30
)

// What the bindings of an owner without a policy may use: calls in a process, per second, and bytes of objects.
const (
	DefaultBindingCalls = 10_000
	DefaultObjectBytes  = 256 << 20
)

// MaxPolicy are the largest values of a policy.
var MaxPolicy = Policy{
	Weight: 100, MaxRunning: 640_000, MaxQueued: 1_000_000, FleetMaxRunning: 10_000_000, FleetMaxQueued: 100_000_000,
	Calls: 10_000_000, CallBurst: 10_000_000, CallBytes: 1 << 40, Sends: 10_000_000, SendBytes: 1 << 40,
	MaxIsolates: 2000, HeapMB: 3584, MaxWorkers: 10_000, CodeBytes: 1 << 40, AssetBytes: 1 << 40, KVBytes: 1 << 40,
	CacheBytes: 1 << 40, ObjectBytes: 1 << 40,
	BindingCalls: 1_000_000, Ceilings: MaxLimits,
}

// Validate returns an error that names the field that is out of bounds and its bounds.
func (p Policy) Validate() error {
	for _, c := range []struct {
		name       string
		value, max int
	}{
		{"weight", p.Weight, MaxPolicy.Weight},
		{"maxRunning", p.MaxRunning, MaxPolicy.MaxRunning},
		{"maxQueued", p.MaxQueued, MaxPolicy.MaxQueued},
		{"fleetMaxRunning", p.FleetMaxRunning, MaxPolicy.FleetMaxRunning},
		{"fleetMaxQueued", p.FleetMaxQueued, MaxPolicy.FleetMaxQueued},
		{"calls", p.Calls, MaxPolicy.Calls},
		{"callBurst", p.CallBurst, MaxPolicy.CallBurst},
		{"callBytes", p.CallBytes, MaxPolicy.CallBytes},
		{"sends", p.Sends, MaxPolicy.Sends},
		{"sendBytes", p.SendBytes, MaxPolicy.SendBytes},
		{"maxIsolates", p.MaxIsolates, MaxPolicy.MaxIsolates},
		{"heapMB", p.HeapMB, MaxPolicy.HeapMB},
		{"maxWorkers", p.MaxWorkers, MaxPolicy.MaxWorkers},
		{"codeBytes", p.CodeBytes, MaxPolicy.CodeBytes},
		{"assetBytes", p.AssetBytes, MaxPolicy.AssetBytes},
		{"kvBytes", p.KVBytes, MaxPolicy.KVBytes},
		{"cacheBytes", p.CacheBytes, MaxPolicy.CacheBytes},
		{"objectBytes", p.ObjectBytes, MaxPolicy.ObjectBytes},
		{"bindingCalls", p.BindingCalls, MaxPolicy.BindingCalls},
	} {
		if c.value < 0 || c.value > c.max {
			return fmt.Errorf("%s is %d: it is 1 to %d, or 0 for the default", c.name, c.value, c.max)
		}
	}
	if p.Group != "" {
		if err := events.CheckName("group", p.Group); err != nil {
			return err
		}
	}
	if err := cmp.Or(p.Compilers.checkOfOwner(), p.Cell.Check(), p.Runs.Check()); err != nil {
		return err
	}
	if len(p.Hosts) > MaxHosts {
		return fmt.Errorf("hosts has %d: at most %d are allowed", len(p.Hosts), MaxHosts)
	}
	for i, host := range p.Hosts {
		if host == AnyHost {
			continue
		}
		if err := CheckHost(host); err != nil {
			return fmt.Errorf("hosts[%d]: %w; %s is every host", i, err, AnyHost)
		}
	}
	if err := cmp.Or(checkSubjects("natsPublish", p.NATSPublish),
		checkSubjects("natsRequest", p.NATSRequest), checkConsume(p.Consume)); err != nil {
		return err
	}
	if err := checkPaused(p.Paused); err != nil {
		return err
	}
	if err := p.Ceilings.Validate(); err != nil {
		return fmt.Errorf("ceilings: %w", err)
	}
	return nil
}

// IsZero reports whether the policy says nothing.
func (p Policy) IsZero() bool { return p.Equal(Policy{}) }

// Equal reports whether both say the same.
func (p Policy) Equal(o Policy) bool { return reflect.DeepEqual(p, o) }

const (
	// MaxHosts is the largest number of Hosts.
	MaxHosts = 1000
	// AnyHost in Hosts is every host.
	AnyHost = "*"
)

// Within is l with its defaults, lowered to the ceilings that are not zero.
func (l Limits) Within(ceilings Limits) Limits {
	l = l.OrDefault()
	lower := func(v *int, c int) {
		if c != 0 {
			*v = min(*v, c)
		}
	}
	if ceilings.CPU != 0 {
		l.CPU = min(l.CPU, ceilings.CPU)
	}
	if ceilings.Wall != 0 {
		l.Wall = min(l.Wall, ceilings.Wall)
	}
	lower(&l.HeapMB, ceilings.HeapMB)
	lower(&l.Subrequests, ceilings.Subrequests)
	lower(&l.Sends, ceilings.Sends)
	lower(&l.LogBytes, ceilings.LogBytes)
	return l
}

// Allow returns an error that names the first limit of a manifest that is above the owner's ceilings.
func (p Policy) Allow(l Limits) error {
	for _, c := range []struct {
		name        string
		asked, most int64
	}{
		{"limits.cpuMs", l.CPU.ms(), p.Ceilings.CPU.ms()},
		{"limits.wallMs", l.Wall.ms(), p.Ceilings.Wall.ms()},
		{"limits.heapMB", int64(l.HeapMB), int64(p.Ceilings.HeapMB)},
		{"limits.subrequests", int64(l.Subrequests), int64(p.Ceilings.Subrequests)},
		{"limits.sends", int64(l.Sends), int64(p.Ceilings.Sends)},
		{"limits.logBytes", int64(l.LogBytes), int64(p.Ceilings.LogBytes)},
	} {
		if c.most != 0 && c.asked > c.most {
			return fmt.Errorf("%s is %d: this owner may have at most %d", c.name, c.asked, c.most)
		}
	}
	return nil
}
