package main_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const module = "github.com/pinwheel-run/pinwheel"

// room is a row of the table in docs/development/adr/0001: what a package may import beside the standard library.
type room struct {
	rooms []string // of this module
	libs  []string // modules or packages of others, by prefix
	tests []string // what its tests may import besides: rooms of this module, and others by prefix
	pure  bool     // builds with CGO_ENABLED=0
}

const (
	libNATS       = "github.com/nats-io/nats.go"
	libNATSServer = "github.com/nats-io/nats-server/v2"
	libProm       = "github.com/prometheus/client_golang/prometheus"
	libZerolog    = "github.com/rs/zerolog"
	libBackoff    = "github.com/cenkalti/backoff/v4"
	libEsbuild    = "github.com/evanw/esbuild"
	libAge        = "filippo.io/age"
	libCron       = "github.com/netresearch/go-cron"
	libOtel       = "go.opentelemetry.io/"
	libPebble     = "github.com/letsencrypt/"
)

// testLibs are allowed in the tests of every room.
var testLibs = []string{"github.com/stretchr/testify", "pgregory.net/rapid", "go.uber.org/goleak"}

// house lists every package. A package that is not listed is not allowed.
var house = map[string]room{
	"": {
		rooms: []string{"internal/operate/cli"},
		tests: []string{"events/workers",
			"consumer", "deploy", "deploy/bundle", "dispatch", "events", "events/lifecycle", "isolates", "isolates/wasm",
			"internal/operate/audit", "internal/operate/runs", "internal/operate/usage",
			"internal/env/bindings", "internal/http/certificates", "internal/process/config", "internal/process/fleet",
			"internal/operate/control", "internal/http/gateway",
			"internal/process/cells", "internal/process/cells/cell", "internal/process/modulecheck", "internal/env/services",
			"internal/test/natstest", "internal/test/parallel",
			"internal/process/supervisor", "internal/process/telemetry", "internal/process/workerlease",
			libProm, libZerolog, "github.com/nats-io/", "go.yaml.in/yaml/v3"},
	},
	"events": {tests: []string{"events/workers"}, pure: true,
		rooms: []string{"internal/lib/guard", "internal/lib/percent"}},
	// Types that rooms share about an event. They are not part of the contract with publishers.
	"events/workers":   {pure: true, rooms: []string{"events"}},
	"events/lifecycle": {pure: true, rooms: []string{"events/workers", "events"}},
	// What a process has of workers and policies now. Whoever needs that asks it.
	"events/workers/catalog": {pure: true, rooms: []string{"events/workers"}},
	"events/client": {pure: true, rooms: []string{"events"}, libs: []string{libNATS},
		tests: []string{"internal/process/natsd", "internal/test/natstest"}},
	"consumer": {
		pure: true,
		rooms: []string{"events/workers", "events/workers/catalog",
			"consumer/attempts", "consumer/bodies", "consumer/bridge", "consumer/cancel", "consumer/deadletter",
			"consumer/janitor", "consumer/jsapi", "consumer/limit",
			"consumer/parking", "consumer/results", "consumer/schedule", "consumer/sources", "consumer/storage", "events",
			"events/lifecycle",
			"internal/process/crashnote", "internal/lib/guard", "internal/lib/repeats",
			"internal/lib/resources", "internal/lib/stored",
		},
		libs: []string{libNATS, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"internal/operate/doctor", "internal/process/natsd", "internal/test/natstest",
			"internal/test/parallel"},
	},
	// Parts of consumer that store, find and park. None of them knows an event in flight.
	"consumer/cancel": {pure: true},
	"consumer/jsapi": {pure: true, rooms: []string{"events", "internal/lib/guard", "internal/lib/perowner",
		"internal/lib/repeats", "internal/lib/stored"},
		libs: []string{libNATS, libBackoff}},
	"consumer/limit": {pure: true, rooms: []string{"events/workers", "events/workers/catalog", "events",
		"internal/lib/guard"},
		libs: []string{"golang.org/x/time/rate"}},
	"consumer/janitor": {pure: true, rooms: []string{"consumer/jsapi", "events", "internal/lib/stored"},
		libs: []string{libNATS, libProm, libZerolog}, tests: []string{"internal/test/natstest"}},
	"consumer/storage": {
		pure: true, rooms: []string{"consumer/jsapi", "events", "internal/lib/guard", "internal/lib/resources",
			"internal/lib/stored"},
		libs: []string{libNATS, libProm, libZerolog},
	},
	"consumer/attempts": {
		pure: true, rooms: []string{"consumer/jsapi", "consumer/storage", "events", "internal/process/crashnote",
			"internal/lib/resources", "internal/lib/stored"}, libs: []string{libNATS, libZerolog},
		tests: []string{"internal/test/jsapitest"},
	},
	"consumer/results": {
		pure: true, rooms: []string{"consumer/jsapi", "consumer/storage", "events", "events/lifecycle",
			"internal/lib/stored"},
		libs:  []string{libNATS},
		tests: []string{"consumer", "internal/test/jsapitest"},
	},
	"consumer/bodies": {
		pure: true, rooms: []string{"consumer/jsapi", "consumer/limit", "events", "events/lifecycle", "internal/lib/guard",
			"internal/lib/perowner",
			"internal/lib/resources", "internal/lib/stored"}, libs: []string{libNATS, libProm, libZerolog},
	},
	"consumer/sources": {
		pure: true, rooms: []string{"events/workers", "events/workers/catalog", "consumer/jsapi", "consumer/storage",
			"events", "internal/lib/guard", "internal/lib/resources", "internal/lib/stored"},
		libs:  []string{libNATS, libProm, libZerolog},
		tests: []string{"consumer", "internal/test/jsapitest", "internal/test/natstest"},
	},
	"consumer/bridge": {
		pure: true, rooms: []string{"events/workers", "events/workers/catalog", "consumer/jsapi", "consumer/limit",
			"consumer/storage", "events", "internal/lib/perowner"},
		libs:  []string{libNATS, libProm, libZerolog},
		tests: []string{"internal/lib/stored", "internal/test/jsapitest"},
	},
	"consumer/deadletter": {
		pure: true, rooms: []string{"consumer/jsapi", "consumer/storage", "events", "internal/lib/guard",
			"internal/lib/resources",
			"internal/lib/stored"},
		libs:  []string{libNATS, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"internal/test/jsapitest"},
	},
	"consumer/parking": {
		pure: true, rooms: []string{"consumer/cancel", "consumer/jsapi", "consumer/storage", "events", "events/lifecycle",
			"events/workers/catalog", "internal/lib/stored"},
		libs:  []string{libNATS, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"events/workers"},
	},
	"consumer/schedule": {
		pure: true, rooms: []string{"events/workers",
			"consumer/jsapi", "consumer/storage", "events", "events/lifecycle", "internal/lib/cron", "internal/lib/guard",
			"internal/lib/perowner", "internal/lib/stored"},
		libs:  []string{libNATS, libProm, libZerolog},
		tests: []string{"consumer", "events/lifecycle", "internal/process/natsd", "internal/test/natstest"},
	},
	"dispatch": {pure: true, rooms: []string{"events/workers", "events/workers/catalog", "events", "events/lifecycle",
		"internal/lib/guard"},
		libs: []string{libBackoff, libProm, libZerolog}},
	"isolates": {
		rooms: []string{"events", "events/lifecycle", "events/workers", "internal/process/crashnote",
			"internal/lib/guard", "isolates/bindings",
			"isolates/ask", "isolates/callqueue", "isolates/charges", "isolates/codecache", "isolates/egress",
			"isolates/holdings", "isolates/affinity", "isolates/hostcalls", "isolates/inbox", "isolates/js", "isolates/offload",
			"isolates/limits", "isolates/owners", "isolates/pipe", "isolates/prewarm", "isolates/stacks",
			"isolates/stats", "isolates/timers", "isolates/v8x", "isolates/wasmgate", "internal/lib/perowner"},
		libs: []string{libProm, "golang.org/x/sys/unix", "rogchap.com/v8go"},
		tests: []string{"internal/test/endless", "internal/test/parallel", "internal/test/soak",
			"internal/test/testcert", libEsbuild,
			"github.com/gorilla/websocket",
			"github.com/andybalholm/brotli", "github.com/klauspost/compress/zstd"},
	},
	// What the JavaScript of a run asks of Go. It knows the run by an interface.
	"isolates/hostcalls": {
		rooms: []string{"events", "events/lifecycle", "events/workers", "internal/lib/guard", "isolates/bindings",
			"isolates/egress",
			"isolates/js", "isolates/offload", "isolates/offload/compression", "isolates/offload/subtle",
			"isolates/pipe", "isolates/v8x"},
		libs: []string{"github.com/gorilla/websocket", libProm},
	},
	// Parts of isolates that know neither runs nor threads.
	"isolates/ask": {
		rooms: []string{"internal/lib/guard", "isolates/js", "isolates/offload/charset",
			"isolates/offload/rewriter", "isolates/offload/subtle", "isolates/v8x"},
		libs: []string{"golang.org/x/net/idna"},
	},
	"isolates/callqueue": {pure: true, rooms: []string{"internal/lib/guard"}},
	"isolates/charges":   {rooms: []string{"isolates/v8x"}},
	"isolates/codecache": {pure: true, rooms: []string{"events/workers"}},
	"isolates/holdings":  {pure: true},
	"isolates/affinity":  {pure: true, rooms: []string{"events/workers"}},
	"isolates/inbox":     {pure: true, rooms: []string{"events/lifecycle"}},
	"isolates/prewarm": {rooms: []string{"events/workers", "isolates/v8x"}, libs: []string{"golang.org/x/sys/unix"},
		tests: []string{"isolates/js"}},
	"isolates/stats": {rooms: []string{"isolates/codecache", "isolates/prewarm"}},
	// The figures of a pool. A cell's pool has them from its broker.
	"isolates/limits": {pure: true, rooms: []string{"events/workers"}},
	"isolates/owners": {pure: true, rooms: []string{"events/workers"}},
	"isolates/stacks": {rooms: []string{"events/workers", "internal/lib/guard", "internal/lib/sourcemap", "isolates/js"}},
	"isolates/timers": {pure: true},
	// Go halves of the bindings in env.
	"isolates/bindings": {
		rooms: []string{"events", "events/lifecycle", "events/workers", "isolates/egress", "isolates/v8x"}},
	// Requests and WebSockets of handlers. It depends neither on V8 nor on runs.
	"isolates/egress": {pure: true, rooms: []string{"internal/lib/guard", "internal/lib/percent", "internal/lib/perowner"},
		libs: []string{"github.com/andybalholm/brotli", "github.com/gorilla/websocket",
			"github.com/klauspost/compress/zstd"}},
	"isolates/js": {rooms: []string{"isolates/v8x"}},
	// What V8 may compile is decided by reading the module, and the answer is V8's.
	"isolates/wasmgate": {rooms: []string{"isolates/owners", "isolates/v8x", "isolates/wasm"},
		tests: []string{"internal/test/wasmtest"}},
	"isolates/pipe": {pure: true, rooms: []string{"events"}},
	"isolates/v8x":  {libs: []string{"rogchap.com/v8go"}, tests: []string{"internal/test/endless"}},
	// Reads modules of WebAssembly before V8 does. It knows no V8.
	"isolates/wasm": {pure: true, tests: []string{"internal/test/wasmtest"}},
	// Long operations beside the pinned threads.
	"isolates/offload": {rooms: []string{"internal/lib/perowner", "isolates/offload/compression",
		"isolates/offload/rewriter", "isolates/v8x"}},
	"isolates/offload/subtle": {rooms: []string{"internal/lib/perowner", "isolates/offload",
		"isolates/offload/compression", "isolates/offload/nodecrypto", "isolates/offload/webcrypto", "isolates/v8x"}},
	"isolates/offload/nodecrypto": {pure: true, libs: []string{"golang.org/x/crypto"}},
	"isolates/offload/webcrypto":  {pure: true, libs: []string{"github.com/cloudflare/circl"}},
	"isolates/offload/rewriter":   {pure: true},
	"isolates/offload/charset":    {pure: true, libs: []string{"golang.org/x/text/encoding"}},
	"isolates/offload/compression": {pure: true, libs: []string{"github.com/andybalholm/brotli",
		"github.com/klauspost/compress"}},
	"deploy": {
		pure: true, rooms: []string{"events/workers", "deploy/assets", "deploy/bundle", "deploy/manifest", "events",
			"internal/env/assetstore",
			"internal/lib/guard", "internal/lib/resources", "internal/env/secrets", "internal/lib/sourcemap",
			"internal/lib/stored"},
		libs: []string{libNATS, libBackoff, libProm, libZerolog},
		tests: []string{"internal/process/natsd", "internal/test/natstest", "internal/test/parallel", libNATSServer,
			"github.com/nats-io/nkeys"},
	},
	// Makes one module of a project. It stores nothing, and knows no NATS.
	"deploy/bundle": {
		pure: true, rooms: []string{"events/workers", "deploy/assets", "deploy/fileroutes", "deploy/manifest", "events",
			"internal/lib/guard", "internal/lib/sourcemap", "isolates/wasm"},
		libs:  []string{libEsbuild, "github.com/fsnotify/fsnotify"},
		tests: []string{"internal/test/wasmtest"},
	},
	// Formats of manifests. It reads no files.
	"deploy/manifest": {
		pure: true, rooms: []string{"events/workers",
			"events", "internal/lib/cron"}, libs: []string{"github.com/tidwall/jsonc",
			"go.yaml.in/yaml/v3", "github.com/pelletier/go-toml/v2"},
		tests: []string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},
	// Which file answers which path. It stores nothing, and knows no NATS.
	"deploy/fileroutes": {pure: true},
	"deploy/assets": {pure: true, rooms: []string{"events/workers", "internal/lib/guard"},
		libs: []string{"golang.org/x/net/html", "golang.org/x/net/http/httpguts"}},
	"internal/http/assetserver": {pure: true, rooms: []string{"events/workers", "deploy/assets"}},
	"internal/env/assetstore": {
		pure: true, rooms: []string{"deploy/assets", "internal/lib/guard", "internal/lib/perowner", "internal/lib/resources"},
		libs:  []string{libNATS, libZerolog, "github.com/andybalholm/brotli", "github.com/klauspost/compress/gzip"},
		tests: []string{"internal/test/natstest"},
	},
	// Encrypts and decrypts secrets. It stores nothing, and knows no NATS.
	"internal/env/secrets":    {pure: true, rooms: []string{"events"}, libs: []string{libAge}},
	"internal/env/dotenv":     {pure: true},
	"internal/http/localhost": {pure: true},
	// Certificates by ACME. It does not know the gateway.
	"internal/http/certificates": {
		pure: true, rooms: []string{"internal/lib/resources", "internal/env/secrets"}, libs: []string{libNATS,
			libProm, libZerolog,
			"golang.org/x/crypto/acme", "golang.org/x/net/publicsuffix"},
		tests: []string{"internal/process/natsd", "internal/test/acmetest", "internal/test/natstest", libAge},
	},
	"internal/lib/cron": {pure: true, libs: []string{libCron}},
	// What owners share: rates, queues that are drained in turn, and CPU time of Go.
	"internal/lib/perowner": {pure: true, rooms: []string{"internal/lib/guard"}, libs: []string{"golang.org/x/time/rate",
		"golang.org/x/sys/unix"}},
	// Guards that a test can switch off. Any room may import it.
	"internal/lib/guard":   {pure: true},
	"internal/lib/percent": {pure: true},
	"internal/lib/repeats": {pure: true, libs: []string{libZerolog}},
	// The only reader of PINWHEEL_* variables.
	"internal/process/config": {
		pure: true, rooms: []string{"events/workers", "events", "internal/process/confine", "internal/process/supervisor"},
		libs: []string{libNATS, libZerolog, "github.com/kelseyhightower/envconfig", "github.com/mattn/go-isatty",
			"github.com/synadia-io/orbit.go/natscontext"},
		tests: []string{"internal/test/natstest"},
	},
	// Shared by commands, endpoints and all other code that controls a fleet. It has no V8, and no command line.
	"internal/operate/control": {
		pure: true, rooms: []string{"events/workers",
			"consumer", "consumer/deadletter", "consumer/schedule", "consumer/sources", "deploy", "deploy/assets",
			"deploy/bundle",
			"events", "internal/operate/audit", "internal/env/bindings", "internal/lib/perowner",
			"internal/lib/resources", "internal/env/secrets", "internal/lib/stored", "internal/operate/tail",
			"internal/operate/cancels", "internal/operate/runs", "events/client", "internal/lib/sourcemap",
			"internal/operate/usage"},
		// the NATS service requires a semantic version
		libs:  []string{libNATS, libProm, libZerolog, libBackoff, "golang.org/x/mod/semver", "golang.org/x/time/rate"},
		tests: []string{"internal/test/jsapitest", "internal/test/natstest"},
	},
	// What KV and objects bindings do. It knows no V8.
	"internal/env/bindings": {
		pure: true, rooms: []string{"events", "events/lifecycle", "events/workers", "events/workers/catalog",
			"internal/lib/resources", "internal/lib/stored"},
		libs:  []string{libNATS, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"internal/process/natsd", "internal/test/natstest", "internal/test/parallel", libNATSServer},
	},
	// What a fleet does, for people. pinwheel top and the console show it.
	"internal/operate/flow": {pure: true, rooms: []string{"internal/operate/control"}, libs: []string{libNATS},
		tests: []string{"go.yaml.in/yaml/v3"}},
	// What waits for workers, for people. Commands and the console show it.
	"internal/operate/queue": {
		pure: true, rooms: []string{"consumer/sources", "events/workers", "internal/operate/control"},
		libs: []string{libNATS}},
	// Pages for operators. It asks the fleet by its control endpoints.
	"internal/operate/console": {
		pure: true, rooms: []string{"events/workers", "consumer/deadletter", "events", "internal/operate/audit",
			"internal/operate/cancels", "internal/operate/control", "internal/operate/doctor",
			"internal/operate/flow", "internal/operate/queue", "internal/http/localhost", "internal/operate/runs",
			"internal/operate/tail", "internal/operate/usage"},
		libs: []string{libNATS, libEsbuild, libZerolog, "github.com/aymanbagabas/go-udiff", "golang.org/x/net/netutil"},
		tests: []string{"internal/process/config", "internal/http/gateway", "internal/process/cells/cell",
			"internal/process/modulecheck", "internal/test/fleettest",
			"internal/test/parallel"},
	},
	"internal/operate/audit": {pure: true, rooms: []string{"events", "internal/lib/resources", "internal/lib/stored"},
		libs: []string{libNATS, libZerolog}, tests: []string{"internal/test/natstest"}},
	"internal/operate/tail": {tests: []string{"events/workers"}, pure: true, rooms: []string{"events", "events/lifecycle"},
		libs: []string{"golang.org/x/time/rate"}},
	// The run history: records of ended attempts, and where they are stored.
	"internal/operate/runs": {
		pure: true, rooms: []string{"events", "events/lifecycle", "events/workers", "internal/lib/perowner",
			"internal/lib/repeats", "internal/lib/resources", "internal/lib/stored", "internal/operate/tail"},
		libs: []string{libNATS, libProm, libZerolog}, tests: []string{"internal/test/natstest", "internal/test/parallel"},
	},
	// Takes events that have not ended out of the queue.
	"internal/operate/cancels": {
		pure: true, rooms: []string{"consumer/cancel", "events", "internal/lib/stored"},
		libs: []string{libNATS, libZerolog}, tests: []string{"internal/test/natstest"},
	},
	// What workers use, by the hour and by the day.
	"internal/operate/usage": {
		pure: true, rooms: []string{"internal/lib/repeats", "internal/lib/resources", "internal/lib/stored"},
		libs: []string{libNATS, libZerolog}, tests: []string{"internal/test/natstest"},
	},
	"internal/process/admin": {pure: true, rooms: []string{"internal/http/localhost"}, libs: []string{libProm}},
	// The only room that knows OpenTelemetry.
	"internal/process/telemetry": {
		pure: true, rooms: []string{"events", "events/lifecycle", "internal/lib/perowner"},
		libs:  []string{libOtel, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"events/workers", "internal/test/otlptest"},
	},
	// HTTP in front of direct events. It knows neither NATS nor V8.
	"internal/http/gateway": {
		pure: true, rooms: []string{"events/workers", "deploy/assets", "events", "events/client", "events/lifecycle",
			"internal/http/assetserver", "internal/lib/eventid",
			"internal/lib/guard", "internal/lib/percent", "internal/lib/perowner", "internal/http/localhost",
			"internal/lib/repeats"},
		libs: []string{"github.com/gorilla/websocket", libProm,
			libZerolog, "golang.org/x/crypto/acme", "golang.org/x/time/rate"},
		tests: []string{"internal/test/parallel", "internal/test/testcert", "github.com/summerwind/h2spec",
			"golang.org/x/net/http2"},
	},
	// Service calls: events of this process that workers send to others of their owner.
	"internal/env/services": {rooms: []string{"events", "events/lifecycle", "internal/lib/eventid", "isolates/egress"},
		libs: []string{libProm}},
	"internal/lib/eventid": {pure: true, rooms: []string{"internal/lib/guard"}},
	// Loads modules of owners in processes of their own.
	"internal/process/modulecheck": {
		rooms: []string{"events/workers", "events", "events/lifecycle", "internal/process/confine",
			"internal/process/spawn", "isolates"},
		libs: []string{"golang.org/x/sys/unix"},
	},
	// Starts processes that run JavaScript and have next to nothing. The supervisor does it for others.
	"internal/process/spawn": {
		pure: true, rooms: []string{"internal/process/cgroup", "internal/process/confine", "internal/process/crashnote"},
		libs:  []string{"golang.org/x/sys/unix"},
		tests: []string{"events", "events/lifecycle", "events/workers", "internal/test/breach", "isolates", libProm},
	},
	// Runs events in processes that may be broken into. The broker, in the process of the fleet.
	"internal/process/cells": {
		rooms: []string{"dispatch", "events", "events/lifecycle", "events/workers", "events/workers/catalog",
			"internal/process/cells/calls", "internal/process/cells/wire", "internal/process/confine",
			"internal/process/crashnote", "internal/process/spawn", "isolates"},
		libs: []string{libBackoff, libProm, libZerolog, "golang.org/x/time/rate"},
		tests: []string{"internal/process/cells/cell", "internal/test/parallel", "internal/test/soak", "isolates/egress",
			"isolates/limits",
			"golang.org/x/sys/unix"},
	},
	// The inside of such a process.
	"internal/process/cells/cell": {
		rooms: []string{"events", "events/lifecycle", "events/workers", "internal/process/cells/calls",
			"internal/process/cells/wire", "internal/process/spawn", "isolates"},
	},
	// What both say to each other about events.
	"internal/process/cells/wire": {
		pure: true, rooms: []string{"events", "events/lifecycle", "events/workers", "isolates/limits"},
		libs: []string{"golang.org/x/net/http/httpguts", "golang.org/x/sys/unix"},
	},
	// The host calls of a process with V8 and without a network, carried out by the one that started it.
	"internal/process/cells/calls": {
		rooms: []string{"events", "events/lifecycle", "events/workers", "isolates/bindings", "isolates/egress"},
		libs:  []string{"github.com/gorilla/websocket", "golang.org/x/net/http/httpguts", "golang.org/x/sync/semaphore"},
		tests: []string{"internal/env/bindings", "internal/env/services", "internal/test/natstest", "internal/test/parallel",
			"internal/test/testcert", "isolates", "golang.org/x/sys/unix", libNATS, libProm, libZerolog},
	},
	"internal/process/workerlease": {
		pure: true, rooms: []string{"events", "internal/lib/perowner", "internal/lib/resources"},
		libs:  []string{libNATS, libProm, libZerolog},
		tests: []string{"events/workers", "dispatch", "events/lifecycle", "internal/test/natstest", "internal/test/parallel"},
	},
	// What a process has done in the last hour. It knows counters, and neither events nor NATS.
	"internal/process/minutes": {pure: true, rooms: []string{"dispatch", "internal/operate/control"}},
	// Connects the rooms of an event.
	"internal/process/fleet": {
		rooms: []string{"events/workers", "events/workers/catalog",
			"consumer", "consumer/jsapi", "consumer/sources", "deploy", "dispatch", "events", "events/client",
			"events/lifecycle", "isolates", "internal/process/admin",
			"internal/http/assetserver", "internal/env/assetstore", "internal/operate/audit",
			"internal/env/bindings", "internal/http/certificates",
			"internal/process/cgroup", "internal/process/confine",
			"internal/process/config", "internal/operate/control", "internal/process/crashnote", "internal/operate/doctor",
			"internal/operate/flow", "internal/http/gateway", "internal/lib/guard", "internal/process/inventory",
			"internal/process/cells", "internal/process/cells/calls", "internal/process/cells/wire", "isolates/egress",
			"isolates/limits",
			"internal/process/minutes", "internal/process/modulecheck", "internal/process/natsd",
			"internal/lib/repeats", "internal/env/secrets", "internal/env/services",
			"internal/process/spawn", "internal/process/supervisor", "internal/operate/tail",
			"internal/process/telemetry", "internal/process/workerlease", "internal/operate/cancels",
			"internal/operate/runs", "internal/operate/usage",
			"internal/lib/resources",
		},
		libs:  []string{libNATS, libProm, libZerolog, "golang.org/x/mod/semver"},
		tests: []string{"internal/test/natstest", "internal/test/parallel"},
	},
	"internal/operate/cli": {
		rooms: []string{"events/workers",
			"consumer/deadletter", "consumer/schedule", "consumer", "deploy", "deploy/assets", "deploy/bundle",
			"deploy/manifest", "events",
			"events/client", "events/lifecycle", "isolates", "internal/operate/audit", "internal/env/bindings",
			"internal/process/config",
			"internal/operate/console", "internal/operate/control", "internal/operate/doctor",
			"internal/env/dotenv", "internal/process/fleet", "internal/operate/flow", "internal/operate/queue",
			"internal/process/inventory", "internal/process/cells/cell", "internal/process/modulecheck", "internal/env/secrets",
			"internal/lib/stored", "internal/operate/tail", "internal/operate/cancels", "internal/operate/runs",
			"internal/operate/usage", "internal/operate/cli/terminal",
		},
		libs: []string{libNATS, libZerolog, "github.com/aymanbagabas/go-udiff",
			"github.com/spf13/cobra", "github.com/spf13/pflag"},
		tests: []string{"internal/lib/resources", "internal/test/natstest", "internal/test/parallel",
			"internal/test/fleettest",
			"golang.org/x/sys/unix"},
	},
	"internal/operate/cli/terminal": {
		rooms: []string{"internal/process/config"},
		libs:  []string{"golang.org/x/term"},
	},
	// Shared by the two rooms that store data in JetStream.
	"internal/process/inventory": {
		rooms: []string{
			"consumer", "deploy", "events", "internal/env/assetstore", "internal/operate/audit", "internal/env/bindings",
			"internal/http/certificates", "internal/process/config", "internal/lib/resources", "internal/process/workerlease",
			"internal/operate/runs", "internal/operate/usage", "events/workers",
		},
		libs: []string{libNATS, libZerolog},
	},
	"internal/lib/resources": {pure: true, rooms: []string{"internal/lib/guard"}, libs: []string{libNATS, libZerolog},
		tests: []string{"internal/test/natstest"}},
	// The only reader of stored messages.
	"internal/lib/stored": {pure: true, rooms: []string{"internal/lib/guard"}, libs: []string{libNATS},
		tests: []string{"internal/test/natstest"}},
	// It only reads: NATS, and the resources that the rooms declare.
	"internal/operate/doctor": {
		pure: true, rooms: []string{"events", "internal/lib/resources", "internal/lib/stored"}, libs: []string{libNATS},
		tests: []string{"consumer", "deploy", "events/lifecycle", "internal/test/natstest", "internal/test/parallel",
			libNATSServer, libZerolog},
	},
	"internal/process/natsd": {pure: true, libs: []string{libNATSServer, libNATS, libZerolog, "golang.org/x/sys/unix"},
		tests: []string{"internal/test/natstest"}},
	// Separate from internal/process/fleet because it must never depend on V8: it survives crashes of V8.
	"internal/process/supervisor": {
		pure: true, rooms: []string{"internal/process/confine"},
		libs: []string{libBackoff, libProm, libZerolog, "github.com/prometheus/client_model/go",
			"github.com/prometheus/common/expfmt"},
	},
	// What a process gives up before it runs JavaScript.
	"internal/process/confine": {
		pure: true, libs: []string{"github.com/elastic/go-seccomp-bpf", "github.com/landlock-lsm/go-landlock/landlock",
			"golang.org/x/net/bpf", "golang.org/x/sys/unix"},
		tests: []string{"internal/test/breach"},
	},
	// What cells may use of the machine, where the supervisor may say it.
	"internal/process/cgroup": {pure: true, libs: []string{"golang.org/x/sys/unix"}},
	// What ran in a process that has died. The supervisor reads it.
	"internal/process/crashnote": {pure: true, rooms: []string{"events/workers", "events"},
		libs: []string{"golang.org/x/sys/unix"}},
	"internal/lib/sourcemap": {pure: true, libs: []string{"github.com/go-sourcemap/sourcemap"},
		tests: []string{libEsbuild}},

	// For tests only: no row above lists them under rooms.
	"internal/test/endless":  {pure: true},
	"internal/test/mutants":  {pure: true},
	"internal/test/soak":     {pure: true, rooms: []string{"events/workers"}},
	"internal/test/parallel": {pure: true, rooms: []string{"events/workers"}},
	"internal/test/testcert": {pure: true, libs: testLibs},
	"internal/test/wasmtest": {pure: true},
	"internal/test/otlptest": {pure: true,
		libs: append([]string{libOtel + "proto/otlp", "google.golang.org/protobuf/proto"}, testLibs...)},
	"internal/test/jsapitest": {
		pure: true, rooms: []string{"consumer", "consumer/jsapi", "consumer/storage", "events", "internal/test/natstest"},
		libs: append([]string{libNATS, libZerolog}, testLibs...),
	},
	// What code would try that has broken out of V8.
	"internal/test/breach": {pure: true, libs: []string{"filippo.io/age/plugin", "golang.org/x/sys/unix"},
		tests: []string{"internal/process/cells/wire", "internal/test/fleettest", "internal/test/natstest", libNATS,
			"golang.org/x/net/http2", "golang.org/x/net/http2/hpack"}},
	"internal/test/acmetest": {pure: true, rooms: []string{"internal/test/natstest"},
		libs: append([]string{libPebble}, testLibs...)},
	"internal/test/natstest": {pure: true, rooms: []string{"internal/process/natsd"},
		libs: append([]string{libNATS, libNATSServer}, testLibs...)},
	"internal/test/fleettest": {
		rooms: []string{"internal/operate/cli", "internal/process/config", "internal/process/fleet",
			"internal/process/cells/cell", "internal/process/modulecheck", "internal/test/breach", "internal/test/natstest"},
		libs: append([]string{libNATS, libNATSServer, libProm, libZerolog, "github.com/prometheus/client_model/go",
			"github.com/prometheus/common"}, testLibs...),
	},
	"internal/test/compat": {
		pure: true, tests: []string{"events/workers",
			"deploy/bundle", "events", "events/client", "internal/operate/cli", "internal/process/config",
			"internal/env/dotenv", "internal/test/fleettest",
			"internal/test/natstest", "isolates/wasm",
			"internal/test/parallel", "internal/test/testcert", libNATS, libNATSServer, "github.com/nats-io/nkeys",
		},
	},
	"internal/test/browser": {
		pure: true, tests: []string{"events", "internal/process/config", "internal/test/fleettest", libNATS,
			"github.com/chromedp/cdproto", "github.com/chromedp/chromedp"},
	},

	// The shipped unit of systemd, in a virtual machine.
	"internal/test/vm":        {pure: true},
	"internal/test/vm/inside": {pure: true, tests: []string{"internal/test/breach"}},

	"internal/test/newbinding": {pure: true, tests: []string{"internal/test/fleettest"}},

	// Tests of whole processes and fleets, from outside.
	"internal/test/e2e": {
		pure: true, tests: []string{"events/workers",
			"consumer/deadletter", "deploy", "deploy/bundle", "events", "events/client", "isolates",
			"internal/env/assetstore", "internal/env/secrets", "internal/http/certificates",
			"internal/lib/resources", "internal/lib/stored",
			"internal/operate/audit", "internal/operate/cli", "internal/operate/control", "internal/operate/tail",
			"internal/operate/cancels", "internal/operate/runs", "internal/operate/usage",
			"internal/process/confine", "internal/test/breach", "github.com/elastic/go-seccomp-bpf", "golang.org/x/sys/unix",
			"internal/process/admin", "internal/process/config", "internal/process/crashnote", "internal/process/fleet",
			"internal/process/inventory", "internal/process/cells/cell", "internal/process/modulecheck",
			"internal/test/acmetest", "internal/test/fleettest", "internal/test/natstest", "internal/test/otlptest",
			"internal/test/parallel", "internal/test/wasmtest", "internal/test/testcert", libNATS, libNATSServer,
			libZerolog, libOtel + "proto/otlp",
			"github.com/nats-io/jwt/v2", "github.com/nats-io/nkeys", "github.com/gorilla/websocket",
			"github.com/prometheus/client_model/go", "github.com/prometheus/common/expfmt",
			"github.com/compose-spec/compose-go/v2", "go.yaml.in/yaml/v3", "rogchap.com/v8go",
		},
	},

	"internal/test/guarantees": {
		pure: true, tests: []string{"consumer", "consumer/deadletter", "events", "internal/lib/resources",
			"internal/operate/cli",
			"internal/process/config", "internal/process/cells/cell", "internal/process/modulecheck", "internal/process/natsd",
			"internal/test/natstest", libNATS},
	},

	"internal/test/hostileowners": {
		tests: []string{"events/workers",
			"consumer", "consumer/deadletter", "events", "events/client", "internal/operate/cli",
			"internal/process/config",
			"internal/operate/control", "internal/lib/guard",
			"internal/test/fleettest", "internal/test/natstest", "internal/test/parallel",
			libNATS, libNATSServer},
	},

	// External users: code that anyone could write.
	"loadtest": {
		pure: true, rooms: []string{"events/workers", "events", "events/client", "loadtest/machine", "loadtest/report",
			"loadtest/webclient"},
		libs: []string{
			libNATS, libNATSServer, "github.com/HdrHistogram/hdrhistogram-go", "github.com/mattn/go-isatty",
			"github.com/spf13/cobra", "github.com/spf13/pflag",
			"github.com/gorilla/websocket", "golang.org/x/sys/unix",
		},
		tests: []string{"internal/test/natstest", "internal/test/parallel"},
	},
	"loadtest/chart": {pure: true},
	"loadtest/machine": {
		pure: true, rooms: []string{"loadtest/report"},
		libs: []string{libNATS, libNATSServer, "github.com/spf13/cobra", "golang.org/x/sys/unix"},
	},
	"loadtest/report": {
		pure: true, rooms: []string{"loadtest/chart"},
		libs: []string{"github.com/HdrHistogram/hdrhistogram-go", "golang.org/x/sys/unix"},
	},
	"loadtest/webclient": {pure: true},
	"examples/authcallout": {
		pure: true, rooms: []string{"events"}, libs: []string{libNATS, "github.com/nats-io/jwt/v2",
			"github.com/nats-io/nkeys"},
	},
	"examples/clients/go": {
		pure: true, rooms: []string{"events", "events/client"}, libs: []string{libNATS},
	},
}

// Budgets of CONTRIBUTING.md, for Go code except tests.
const (
	maxFileLines     = 400
	maxFunctionLines = 60
)

// Exceptions to the budgets, with the reason: "path" or "path:function".
var longFiles, longFunctions = map[string]string{}, map[string]string{}

// sleeps are the tests that may call time.Sleep. They must not use it to wait for something to happen.
var sleeps = map[string]string{
	"consumer/attempts_test.go":             "the sleep is the handler's work, longer than the lease",
	"consumer/bench_test.go":                "the sleep is the publisher's, while the stream is full",
	"consumer/overtake_test.go":             "the sleep is the handler's work",
	"consumer/puller_test.go":               "the sleep is the handler's work",
	"consumer/delay_test.go":                "the sleep is between two cancellations",
	"internal/process/cells/cancel_test.go": "the sleep chooses the moment of a cancellation",
	"isolates/cancel_test.go":               "the sleep chooses the moment of a cancellation",
	"internal/test/e2e/starved_test.go":     "the sleep is the fault: so long the process stands still",
	"isolates/eventsource_test.go":          "the sleep is a server's, between two writes",
	"isolates/modes_test.go":                "the sleep is a server's, which answers later to some",
	"internal/operate/tail/hub_test.go":     "in a synctest bubble: the clock is fake",
	"dispatch/batch_test.go":                "in a synctest bubble: the clock is fake",
	"dispatch/calls_test.go":                "in a synctest bubble: the clock is fake",
	"dispatch/dispatcher_test.go":           "in a synctest bubble: the clock is fake",
	"dispatch/pool_test.go":                 "in a synctest bubble: the clock is fake",
	"dispatch/stay_test.go":                 "in a synctest bubble: the clock is fake",
	"dispatch/bans_test.go":                 "in a synctest bubble: the clock is fake",
	"dispatch/quarantine_test.go":           "in a synctest bubble: the clock is fake",

	"consumer/wholecluster_test.go":         "the sleep is a publisher's, before it tries again",
	"consumer/parkbench_test.go":            "a benchmark looks at a backlog now and then, so as not to disturb it",
	"isolates/v8x/contention_bench_test.go": "the sleep is the work's, between two calls",
}

// pkg is the output of go list for a package.
type pkg struct {
	ImportPath, Dir, Doc               string
	Imports, TestImports, XTestImports []string
	CgoFiles                           []string
}

func (p pkg) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,Imports,TestImports,XTestImports,CgoFiles", "./...")
	out, err := cmd.Output()
	require.NoError(t, err)
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		require.NoError(t, dec.Decode(&p))
		list = append(list, p)
	}
	require.NotEmpty(t, list)
	return list
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range packages(t) {
		row, ok := house[p.name()]
		if !ok {
			t.Errorf("%q is not a room of the house: add it to the table with what it may import, or put its code where it belongs", p.name())
			continue
		}
		for _, path := range p.Imports {
			if !allowed(path, row.rooms, row.libs) {
				t.Errorf("%s must not import %s", label(p), path)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if path != p.ImportPath && !allowed(path, slices.Concat(row.rooms, row.tests),
				slices.Concat(row.libs, row.tests, testLibs)) {
				t.Errorf("tests of %s must not import %s", label(p), path)
			}
		}
	}
}

func label(p pkg) string {
	if p.name() == "" {
		return "the root"
	}
	return p.name()
}

func allowed(importPath string, rooms, libs []string) bool {
	if importPath == module {
		return slices.Contains(rooms, "")
	}
	if own, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return slices.Contains(rooms, own)
	}
	first, _, _ := strings.Cut(importPath, "/")
	if !strings.Contains(first, ".") {
		return true // standard library; TestOnlyV8xUsesCgo checks "C"
	}
	return slices.ContainsFunc(libs, func(lib string) bool { return lib != "" && strings.HasPrefix(importPath, lib) })
}

func TestPackagesSayWhatHappensInThem(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", label(p))
		}
	}
}

// A room below internal/ stands in a wing, which has no code of its own.
func TestRoomsStandInWings(t *testing.T) {
	t.Parallel()
	wings, err := os.ReadDir("internal")
	require.NoError(t, err)
	var names []string
	for _, w := range wings {
		names = append(names, w.Name())
		files, err := filepath.Glob(filepath.Join("internal", w.Name(), "*.go"))
		require.NoError(t, err)
		require.Empty(t, files, "rooms stand in wings, which have no code")
	}
	require.Equal(t, []string{"env", "http", "lib", "operate", "process", "test"}, names)
}

func TestOnlyV8xUsesCgo(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.CgoFiles) > 0 && p.name() != "isolates/v8x" {
			t.Errorf("%s uses cgo in %v", label(p), p.CgoFiles)
		}
	}
}

func TestPureRoomsBuildWithoutCgo(t *testing.T) {
	t.Parallel()
	var pure []string
	for _, p := range packages(t) {
		if house[p.name()].pure {
			pure = append(pure, p.ImportPath)
		}
	}
	require.NotEmpty(t, pure)
	// It compiles them as go build does, and links no command.
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export"}, pure...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// goFile is a parsed source file of ours.
type goFile struct {
	path string // with slashes, from the root
	set  *token.FileSet
	ast  *ast.File
}

func (f goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f goFile) line(p token.Pos) int { return f.set.Position(p).Line }

// parsed reads and parses all Go files once: many tests look at them.
var parsed = sync.OnceValues(func() ([]goFile, error) {
	paths, err := walk()
	if err != nil {
		return nil, err
	}
	var files []goFile
	for _, p := range paths {
		if filepath.Ext(p) != ".go" {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.FromSlash(p), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, goFile{p, set, file})
	}
	return files, nil
})

func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// ourFiles returns the paths of all files except generated ones.
func ourFiles(t *testing.T) []string {
	t.Helper()
	paths, err := walk()
	require.NoError(t, err)
	return paths
}

func walk() (paths []string, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", ".pinwheel", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() && d.Name() != ".git" { // a file, in a worktree
			paths = append(paths, filepath.ToSlash(p))
		}
		return err
	})
	return paths, err
}

func TestFilesAndFunctionsStayShort(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		if n := f.line(f.ast.FileEnd); n > maxFileLines && longFiles[f.path] == "" {
			t.Errorf("%s has %d lines: at most %d", f.path, n, maxFileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := f.line(fn.Body.Rbrace) - f.line(fn.Pos()) + 1
			if n > maxFunctionLines && longFunctions[f.path+":"+fn.Name.Name] == "" {
				t.Errorf("%s:%d: %s has %d lines: at most %d", f.path, f.line(fn.Pos()), fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// maxLine is the maximum number of characters of a line that is a comment, and of a line of a page.
const maxLine = 120

// longLines are exceptions to maxLine, by path or folder, with the reason.
var longLines = map[string]string{
	"docs/reference/web-apis.md": "TestWebAPIs writes it, a line for each note",
}

func TestLinesStayShort(t *testing.T) {
	needed := map[string]bool{}
	check := func(p string, n int, line string) {
		if utf8.RuneCountInString(line) <= maxLine {
			return
		}
		for prefix := range longLines {
			if strings.HasPrefix(p, prefix) {
				needed[prefix] = true
				return
			}
		}
		t.Errorf("%s:%d has %d characters: at most %d", p, n, utf8.RuneCountInString(line), maxLine)
	}
	for _, p := range ourFiles(t) {
		switch {
		case path.Ext(p) == ".go":
			for i, line := range strings.Split(read(t, p), "\n") {
				if text := strings.TrimSpace(line); strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "// #cgo") {
					check(p, i+1, line)
				}
			}
		case path.Ext(p) == ".md" && strings.HasPrefix(p, "docs/"):
			for i, line := range prose(read(t, p)) {
				check(p, i+1, line)
			}
		}
	}
	for prefix := range longLines {
		require.True(t, needed[prefix], "no line of %s is long: remove the exception", prefix)
	}
}

// prose returns the lines of a page, empty where they are code, a row of a table, a comment or made from the code.
func prose(page string) []string {
	lines := strings.Split(page, "\n")
	code, made := false, false
	for i, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			code = !code
		case strings.HasPrefix(text, "<!--"):
			made = strings.Contains(text, ": made by ")
		}
		if code || made || strings.HasPrefix(text, "|") || strings.HasPrefix(text, "<!--") {
			lines[i] = ""
		}
	}
	return lines
}

// ends are the methods that end an event or publish its reply, with the files that may call them.
var ends = map[string][]string{
	"ack": {"consumer/settle.go"}, "nak": {"consumer/settle.go"}, "reply": {"consumer/settle.go"},
	"publish": {"consumer/settle.go"},
	"queue":   {"consumer/settle.go", "consumer/acks.go"}, // of acks
}

// publishes are the methods by which package consumer sends a message through its connection or its Client.
var publishes = []string{"Publish", "PublishMsg", "PublishRequest", "PublishAsync", "PublishMsgAsync", "Request",
	"RequestMsg", "Respond", "RespondMsg", "Ask"}

// publishers are the files of package consumer that may call one of these, with the number of calls.
var publishers = map[string]struct {
	calls int
	what  string
}{
	"consumer/acks.go":      {2, "acks: the last of a group is a request"},
	"consumer/reply.go":     {3, "replies, also those that are too large or are sent again"},
	"consumer/settle.go":    {1, "events that are given back"},
	"consumer/puller.go":    {1, "the ack of a delivery whose event has ended, and which has no entry"},
	"consumer/lease.go":     {1, "renewed leases: they end no event"},
	"consumer/pump.go":      {1, "requests for deliveries"},
	"consumer/workerlog.go": {1, "lines of a worker's output"},
}

// Events end in consumer/settle.go. Only the files in publishers send what ends them.
func TestEventsEndInOneFile(t *testing.T) {
	decided, sent := 0, map[string]int{}
	for _, f := range goFiles(t) {
		if f.test() || path.Dir(f.path) != "consumer" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || ends[sel.Sel.Name] == nil {
					break
				}
				if decided++; !slices.Contains(ends[sel.Sel.Name], f.path) {
					t.Errorf("%s:%d: %s is called: only %v may end events and publish replies", f.path, f.line(n.Pos()), sel.Sel.Name, ends[sel.Sel.Name])
				}
			case *ast.SelectorExpr: // also a method that is not called here, but passed on
				// stored.Request is a type
				if x, ok := n.X.(*ast.Ident); !slices.Contains(publishes, n.Sel.Name) || ok && x.Name == "stored" {
					break
				}
				if sent[f.path]++; publishers[f.path].what == "" {
					t.Errorf("%s:%d: %s: only the files in publishers send messages", f.path, f.line(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
	require.Positive(t, decided)
	for name, p := range publishers {
		require.Equal(t, p.calls, sent[name], "calls in %s that send messages: change the number and the reason with the code", name)
	}
}

func TestNothingHappensByItself(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: init runs unasked: make it a function that somebody calls", f.path, f.line(fn.Pos()))
			}
		}
	}
}

func TestTestsWaitForFacts(t *testing.T) {
	notInTests(t, "time", "Sleep", sleeps, "wait for what must happen, or add the reason to sleeps")
}

// dials are the tests that may call nats.Connect.
var dials = map[string]string{
	"deploy/example_test.go":               "an Example shows what users write",
	"events/client/example_test.go":        "an Example shows what users write",
	"events/client/example_fleet_test.go":  "an Example shows what users write",
	"internal/process/natsd/natsd_test.go": "natstest imports natsd",
}

// nats.Connect gives up after two seconds. A busy machine may stand still for so long.
func TestTestsConnectPatiently(t *testing.T) {
	notInTests(t, "nats", "Connect", dials, "call natstest.Dial, or add the reason to dials")
}

// notInTests reports the uses of a name of a package in tests, except in the files that are listed.
func notInTests(t *testing.T, pkg, name string, except map[string]string, hint string) {
	t.Helper()
	for _, f := range goFiles(t) {
		if !f.test() || except[f.path] != "" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != name {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg {
				t.Errorf("%s:%d: %s.%s: %s", f.path, f.line(sel.Pos()), pkg, name, hint)
			}
			return true
		})
	}
}

func TestTheVocabularyIsDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if !strings.HasPrefix(f.path, "events/") || f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			for name, doc := range exported(d) {
				if doc == "" {
					t.Errorf("%s: %s has no doc comment", f.path, name)
				}
			}
		}
	}
}

// exported returns the exported names of a declaration, with their comments. The comment of a const or var block counts
// for its members, and so does a comment at the end of a member's line.
func exported(d ast.Decl) map[string]string {
	names := map[string]string{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			names[d.Name.Name] = d.Doc.Text()
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					names[s.Name.Name] = d.Doc.Text() + s.Doc.Text()
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						names[n.Name] = d.Doc.Text() + s.Doc.Text() + s.Comment.Text()
					}
				}
			}
		}
	}
	return names
}

// machine matches paths that are valid only on a developer's machine.
var machine = regexp.MustCompile(`/(home|root|Users|work)/[A-Za-z0-9._-]+`)

func TestNoNamesOfMachines(t *testing.T) {
	for _, p := range ourFiles(t) {
		if p == "arch_test.go" || p == ".git" || filepath.Ext(p) == ".test" {
			continue
		}
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if m := machine.FindString(line); m != "" {
				t.Error(fmt.Sprintf("%s:%d", p, i+1), "names a place on somebody's machine:", m)
			}
		}
	}
}

// A test that .ci/run leaves out of a step, or names for one, exists: a name that nobody has would say nothing.
func TestNamesOfTestsInCIExist(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test() {
				tests[fn.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(read(t, ".ci/run"), -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.True(t, tests[name], ".ci/run names %s", name)
	}
}
