package config

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
)

// EnvPrefix is the first part of the name of every variable.
const EnvPrefix = "PINWHEEL"

// MaxThreads is the highest number of pinned threads of a process.
const MaxThreads = 64

// ControlByPermissions is the value of PINWHEEL_CONTROL that leaves access control of requests to NATS alone.
const ControlByPermissions = "permissions"

// RunsOff is the value of PINWHEEL_RUNS that turns the run history off.
const RunsOff = "off"

// Values of PINWHEEL_CONFINE and PINWHEEL_CELL_CONFINE beside on.
const (
	ConfineRequire = "require"
	ConfineOff     = "off"
)

// Config is the configuration of a process. Variables are declared only in this struct: the name of a variable follows
// from the field's (NatsURL is PINWHEEL_NATS_URL), Variables returns its tags, and errors quote them.
type Config struct {
	NatsURL     string `split_words:"true" secret:"true" meaning:"URLs of the NATS servers. Empty: serve and dev embed a server, and other commands use the one on this machine at PINWHEEL_NATS_PORT" allowed:"URLs like nats://host:4222 with a comma between them, or empty"`
	NatsContext string `split_words:"true" meaning:"NATS context (of the nats command) to connect with, in place of PINWHEEL_NATS_URL" allowed:"the name of a context, and only when PINWHEEL_NATS_URL is empty"`
	NatsCreds   string `split_words:"true" meaning:"Credentials file to connect with" allowed:"the path of a readable file, or empty"`
	NatsPort    int    `split_words:"true" default:"4222" meaning:"Port of the embedded NATS, on loopback" allowed:"1 to 65535, or -1 for a free one"`
	Data        string `split_words:"true" default:".pinwheel" meaning:"Directory for the data of the embedded NATS" allowed:"a path"`

	NatsUser     string `split_words:"true" secret:"true" meaning:"User to connect as" allowed:"a name, and then no other credentials; or empty"`
	NatsPassword string `split_words:"true" secret:"true" meaning:"Password of PINWHEEL_NATS_USER" allowed:"only beside PINWHEEL_NATS_USER"`
	NatsToken    string `split_words:"true" secret:"true" meaning:"Token to connect with" allowed:"a token, and then no other credentials; or empty"`
	NatsNkey     string `split_words:"true" meaning:"File with the nkey seed to connect with" allowed:"the path of a readable file, and then no other credentials; or empty"`
	NatsCA       string `split_words:"true" meaning:"File with the certificates that sign that of the server, in PEM. The connection then uses TLS. Empty: those of the system" allowed:"the path of a readable file, or empty"`
	NatsCert     string `split_words:"true" meaning:"File with the certificate to show to the server, in PEM" allowed:"the path of a readable file, beside PINWHEEL_NATS_KEY; or empty"`
	NatsKey      string `split_words:"true" meaning:"File with the key of PINWHEEL_NATS_CERT, in PEM" allowed:"the path of a readable file, beside PINWHEEL_NATS_CERT; or empty"`
	Owner        string `split_words:"true" meaning:"Owner that the NATS user belongs to. Commands then use the owner API, and see only what is this owner's. Empty: the user is the fleet's. serve and dev ignore it" allowed:"the name of an owner, 1 to 64 of A-Z a-z 0-9 _ -, or empty"`
	NatsMonitor  List   `split_words:"true" meaning:"Monitoring ports of all servers. Pinwheel asks there whether they fsync, and doctor whether they are healthy" allowed:"URLs like http://host:8222 with a comma between them, or empty"`

	AdminAddr    string `split_words:"true" default:"127.0.0.1:8422" meaning:"Address for /healthz, /readyz, /metrics, /scale and /admin/pool. Empty: none" allowed:"host:port, or empty"`
	Sources      List   `split_words:"true" meaning:"Further NATS accounts that have sources of workers: NATS contexts (of the nats command), by the name that manifests give the connection" allowed:"NAME or NAME=CONTEXT, with commas between; or empty"`
	Profiling    bool   `split_words:"true" default:"false" meaning:"Whether PINWHEEL_ADMIN_ADDR also serves Go profiles, at /debug/pprof/" allowed:"true or false"`
	Control      string `split_words:"true" meaning:"Who may use the guarded control endpoints, which change something or show events. Empty: clients that have PINWHEEL_CONTROL_TOKEN. permissions: clients that NATS allows to publish to PINWHEEL_PREFIX.control" allowed:"permissions, and only when PINWHEEL_CONTROL_TOKEN is empty, or empty"`
	ControlToken string `split_words:"true" secret:"true" meaning:"Token for these control endpoints. Empty: they are off, unless PINWHEEL_CONTROL says otherwise" allowed:"at least 16 printable characters without spaces, or empty"`

	ConsoleAddr     string `split_words:"true" meaning:"Address of the console, a web page for operators. Who sets it sets PINWHEEL_CONTROL_TOKEN or PINWHEEL_CONSOLE_TOKEN too. Empty: serve has none, and dev uses 127.0.0.1:8423" allowed:"host:port, or empty"`
	ConsoleToken    string `split_words:"true" secret:"true" meaning:"Token with which people log in to the console to see. With PINWHEEL_CONTROL_TOKEN they act too. Empty: nobody only sees" allowed:"at least 16 printable characters without spaces, other than PINWHEEL_CONTROL_TOKEN, or empty"`
	ConsoleHosts    List   `split_words:"true" meaning:"Host names by which browsers reach the console, beside localhost and IP addresses" allowed:"host names in lower case with a comma between them, or empty"`
	ConsoleTraceURL string `split_words:"true" meaning:"Address of a trace in a viewer of traces, with {trace} in place of its ID. The console links there. Empty: no links" allowed:"an http or https URL with {trace}, or empty"`

	HTTPAddr           string        `split_words:"true" meaning:"Address where workers answer HTTP requests. Empty: serve answers none, and dev uses 127.0.0.1:8787" allowed:"host:port, or empty"`
	HTTPCert           string        `split_words:"true" meaning:"File with the certificate for HTTP and its chain, in PEM. It is read again when it changes. Requests then come over TLS, as HTTP/2 or HTTP/1.1. Empty: they come in plain text" allowed:"the path of a readable file, beside PINWHEEL_HTTP_KEY; or empty"`
	HTTPKey            string        `split_words:"true" meaning:"File with the key of PINWHEEL_HTTP_CERT, in PEM" allowed:"the path of a readable file, beside PINWHEEL_HTTP_CERT; or empty"`
	HTTPAcme           string        `split_words:"true" meaning:"ACME directory from which each host that the fleet serves gets a certificate. Requests then come over TLS, as HTTP/2 or HTTP/1.1. Who sets it accepts the terms of the directory. letsencrypt-staging: certificates that browsers do not trust, for trials. Empty: no ACME" allowed:"letsencrypt, letsencrypt-staging or an https URL, beside PINWHEEL_HTTP_ADDR and PINWHEEL_SECRETS_KEY, and only when PINWHEEL_HTTP_CERT is empty; or empty"`
	HTTPAcmeEmail      string        `split_words:"true" meaning:"Address for messages of the CA. Empty: none" allowed:"an email address, beside PINWHEEL_HTTP_ACME; or empty"`
	HTTPAcmeCA         string        `split_words:"true" meaning:"File with the certificates that sign that of PINWHEEL_HTTP_ACME, in PEM. Empty: those of the system" allowed:"the path of a readable file, beside PINWHEEL_HTTP_ACME; or empty"`
	HTTPAcmeOwnerHosts int           `split_words:"true" default:"20" meaning:"Number of hosts of one owner that may have a certificate by ACME. An owner may cause three orders a week for each of them, renewals apart" allowed:"1 to 100"`
	HTTPDomain         string        `split_words:"true" meaning:"What the hosts of workers end with: WORKER--OWNER.DOMAIN. Empty: no worker has a host; dev uses localhost" allowed:"a host name in lower case, or empty"`
	HTTPPaths          string        `split_words:"true" meaning:"Owner whose workers also answer at the path /WORKER/ of every other host. Empty: none; dev uses its own" allowed:"the name of an owner, 1 to 64 of A-Z a-z 0-9 _ -, or empty"`
	HTTPHosts          List          `split_words:"true" meaning:"Hosts that HTTP requests may have, beside localhost, addresses, what ends with PINWHEEL_HTTP_DOMAIN, and what a route names; *.example is every host below, * every host. Empty: every host, and in dev no other" allowed:"host names in lower case with a comma between them, or empty"`
	HTTPTrust          List          `split_words:"true" meaning:"Addresses of proxies. Only their X-Forwarded-For and X-Forwarded-Proto count" allowed:"IP addresses and CIDR ranges with a comma between them, or empty"`
	HTTPMaxConnections int           `split_words:"true" default:"10000" meaning:"Number of open HTTP connections of this process. More wait to be accepted, when no idle one can be closed. A client has at most a quarter: an IPv4 address, or 64 bits of an IPv6 address, unless PINWHEEL_HTTP_TRUST names it" allowed:"1 to 1000000"`
	HTTPOwnerRequests  int           `split_words:"true" default:"1000" meaning:"Number of HTTP requests to workers of one owner at the same time, in this process. More get status 503" allowed:"1 to 1000000"`
	HTTPMemory         Bytes         `split_words:"true" default:"256MiB" meaning:"Memory of this process for bodies of HTTP requests and responses that wait for a worker or a client. An owner may use as much of it as is free. Beyond that its requests get status 503" allowed:"a size from 1MiB"`
	HTTPMaxBody        Bytes         `split_words:"true" default:"1GiB" meaning:"Size of the largest body of an HTTP request. Larger ones get status 413" allowed:"a size from 1KiB to 1TiB"`
	HTTPCache          Bytes         `split_words:"true" default:"64MiB" meaning:"Memory of this process for files of workers that were read. The rest is read from NATS" allowed:"a size, 0 or more"`
	HTTPWait           time.Duration `split_words:"true" default:"30s" meaning:"Time that an HTTP request may wait until its worker starts. Then it gets status 503" allowed:"a duration from 100ms to 15m"`
	HTTPMessages       bool          `split_words:"true" default:"false" meaning:"Whether the response to an HTTP request that failed has the message of the failure, and not only its reason. Messages may have secrets of the owner. dev: true" allowed:"true or false"`
	HTTPLog            bool          `split_words:"true" default:"true" meaning:"Whether each HTTP request is logged, as info" allowed:"true or false"`

	SecretsKey string `split_words:"true" meaning:"File with the age identities that decrypt the secrets of workers. Secrets are encrypted to the first one; the others open what was encrypted before a rotation. Empty: dev makes one in PINWHEEL_DATA, and serve runs no worker that names secrets" allowed:"the path of a readable file, or empty"`

	MetricsOwners  List `split_words:"true" meaning:"Owners that have metrics of their own. Empty: none" allowed:"at most 100 names of owners with a comma between them, each 1 to 64 of A-Z a-z 0-9 _ -, or empty"`
	TraceOwnerRate int  `split_words:"true" default:"100" meaning:"Number of events of one owner that this process traces in a second, when OTEL_* variables have it send traces" allowed:"1 to 1000000"`

	LogLevel  string `split_words:"true" default:"info" meaning:"Least important messages to log" allowed:"one of debug, info, warn, error"`
	LogFormat string `split_words:"true" default:"auto" meaning:"Format of log messages. auto: console on a terminal, json otherwise" allowed:"one of auto, console, json"`

	Processes         int    `split_words:"true" default:"1" meaning:"Number of processes of serve that run JavaScript. A supervisor replaces those that die or should be replaced. 0: serve runs JavaScript itself, as dev does, and a crash of V8 ends serve" allowed:"0 to 64"`
	Confine           string `split_words:"true" default:"on" meaning:"Whether the processes of PINWHEEL_PROCESSES are confined: they open few files, start no program and signal no other process. on: as far as the system can. require: serve does not start where the system refuses a part. dev is not confined" allowed:"one of on, require, off"`
	Cell              string `split_words:"true" default:"shared" meaning:"Process in which JavaScript of owners runs whose policy (cell) does not say it. shared: that of the fleet. own: a cell for each owner or group, which has nothing but JavaScript. A name: one cell for all of them" allowed:"shared, own, or a name of 1 to 64 of A-Z a-z 0-9 _ -"`
	MaxCells          int    `split_words:"true" default:"100" meaning:"Number of cells that the process may have at once. If more are wanted, those that have nothing to do end first, and events wait" allowed:"1 to 250"`
	CellConfine       string `split_words:"true" default:"on" meaning:"Whether cells are confined: they open no file and no socket, start no process, and have namespaces of their own. on: as far as the system can. require: no cell starts where the system refuses a part, and serve does not if PINWHEEL_CELL wants cells" allowed:"one of on, require, off"`
	Threads           int    `split_words:"true" default:"0" meaning:"Number of pinned threads that run JavaScript. 0: one for each CPU that may be used, divided among PINWHEEL_PROCESSES" allowed:"0 to 64"`
	BackgroundThreads int    `split_words:"true" default:"-1" meaning:"Number of further pinned threads, of a lower priority, for owners that take more than their share of the CPU. -1: as many as the others up to 4, and an eighth of more" allowed:"-1 to 64"`
	Slots             int    `split_words:"true" default:"64" meaning:"Number of events in progress on one thread. Most of them wait for I/O" allowed:"1 to 10000"`
	Window            int    `split_words:"true" default:"4096" meaning:"Number of events that the process has in flight at once: queued, running, waiting for a retry or being settled. An event counts once for each 256 KiB, rounded up" allowed:"32 to 1048576"`
	MaxIsolates       int    `split_words:"true" default:"500" meaning:"Number of V8 isolates in the process" allowed:"1 to 2000"`
	HeapMax           Bytes  `split_words:"true" default:"0" meaning:"Size of the heaps and ArrayBuffers of all isolates of the process together, with the data that Go has for their runs. Idle isolates are closed to stay below it. 0: as much as V8 can have, 3.5GiB less 144MiB for each thread, background threads too" allowed:"0, or a size from 64MiB to that"`

	Compilers string `split_words:"true" default:"full" meaning:"Compilers of V8 that the code of workers gets in this process. baseline: none that optimizes. none: code is interpreted. An owner whose policy (compilers) allows less gets less" allowed:"one of full, baseline, none"`

	OwnerMaxRunning  int   `split_words:"true" default:"0" meaning:"Number of events of one owner in progress in this process. 0: three quarters of all slots" allowed:"0 to 640000"`
	OwnerMaxIsolates int   `split_words:"true" default:"0" meaning:"Number of V8 isolates of one owner in this process. 0: half of PINWHEEL_MAX_ISOLATES" allowed:"0 to 2000, and not above PINWHEEL_MAX_ISOLATES"`
	OwnerHeapMax     Bytes `split_words:"true" default:"0" meaning:"Size of the heaps and ArrayBuffers of one owner in this process, with the data that Go has for their runs. 0: half of PINWHEEL_HEAP_MAX" allowed:"0, or a size from 1MiB to PINWHEEL_HEAP_MAX"`
	OwnerMaxWaiting  int   `split_words:"true" default:"100000" meaning:"Approximate number of delayed events of one owner that may wait in NATS for their time. More are refused. 0: any number" allowed:"0 to 100000000"`
	Overtake         int   `split_words:"true" default:"10000" meaning:"Backlog of a lane above which events of owners with few waiting events skip ahead. 0 disables it" allowed:"0 to 100000000"`
	OwnerMaxQueued   int   `split_words:"true" default:"512" meaning:"Number of events of one owner that wait in this process. More are parked in NATS until there is room" allowed:"1 to 1000000"`

	AckWait        time.Duration `split_words:"true" default:"30s" meaning:"Time after which NATS gives the events of a process that died to another" allowed:"a duration from 200ms to 1h"`
	OldVersionIdle time.Duration `split_words:"true" default:"1m" meaning:"Time without an event after which the context of an older version ends, with its WebSockets, once a newer version has had an event" allowed:"a duration from 1s to 24h"`
	DrainTimeout   time.Duration `split_words:"true" default:"30s" meaning:"Time that running events have to finish after SIGTERM" allowed:"a duration from 0s to 1h"`

	DeadLetterAge   time.Duration `split_words:"true" default:"720h" meaning:"How long dead letters are kept" allowed:"a duration from 1m"`
	DeadLetterBytes Bytes         `split_words:"true" default:"1GiB" meaning:"Size of the stream of dead letters. An owner may use at most as much of it as is free. Beyond that its oldest letters are removed" allowed:"a size from 1MiB"`
	Runs            string        `split_words:"true" meaning:"Which ended attempts the run history keeps: failures, all, or failures and a share of the successes, like 1%. none: those of owners whose policy (runs) says so. off: the fleet has no history. Empty: off in serve, all in dev" allowed:"off, none, failures, all, a share from 0.000001% to 100%, or empty"`
	RunsAge         time.Duration `split_words:"true" default:"168h" meaning:"How long records of the run history are kept" allowed:"a duration from 1m"`
	RunsBytes       Bytes         `split_words:"true" default:"192MiB" meaning:"Size of the stream of the run history. An owner may use at most as much of it as is free. Beyond that its oldest records are removed" allowed:"a size from 1MiB"`
	Durability      string        `split_words:"true" default:"default" meaning:"When stored events are on disk. fsync: before the publisher gets its acknowledgement. A NATS that is not embedded must be configured so too" allowed:"default or fsync"`

	Duplicates time.Duration `split_words:"true" default:"2m" meaning:"Time for which the event stream remembers message ids. An id that comes again within it is stored once. Each id costs the server memory" allowed:"a duration from 100ms to 24h"`
	ResultAge  time.Duration `split_words:"true" default:"24h" meaning:"Time for which results of idempotent workers are kept" allowed:"a duration from 1s to 720h"`

	MaxBytes        Bytes  `split_words:"true" default:"2GiB" meaning:"Size of the event stream, and of the stream of parked events, each. A full stream refuses publishers" allowed:"a size from 1MiB, like 500MB or 20GiB"`
	OwnerKVBytes    Bytes  `envconfig:"OWNER_KV_BYTES" default:"16MiB" meaning:"Bytes that the workers of one owner store by KV bindings. JetStream reserves about what they use. The owner's policy (kvBytes) comes first" allowed:"a size from 64KiB, like 500MB or 20GiB"`
	OwnerCacheBytes Bytes  `split_words:"true" default:"8MiB" meaning:"Bytes that the workers of one owner keep in caches. JetStream reserves about what they use. The owner's policy (cacheBytes) comes first" allowed:"a size from 1MiB, like 500MB or 20GiB"`
	WorkersMaxBytes Bytes  `split_words:"true" default:"512MiB" meaning:"Size of the bucket with the versions of all workers, and of that with bundles that do not fit there, each. An eighth of it is for deployments, and a thirty-second each for policies and for routes. A full bucket refuses deploys. 0: as much as JetStream has" allowed:"a size from 1MiB, or 0"`
	AssetsMaxBytes  Bytes  `split_words:"true" default:"512MiB" meaning:"Size of the bucket with the files of all workers. A full bucket refuses files. 0: as much as JetStream has" allowed:"a size from 1MiB, or 0"`
	Replicas        int    `split_words:"true" default:"1" meaning:"Copies that the NATS cluster keeps of everything stored" allowed:"1, 3 or 5"`
	Prefix          string `split_words:"true" default:"pinwheel" meaning:"First token of every subject" allowed:"1 to 64 of A-Z a-z 0-9 _ -"`

	ReplyPrefixes         List `split_words:"true" default:"_INBOX." meaning:"What a Reply-To may begin with; {owner} stands for the owner of the event" allowed:"subject prefixes with a comma between them, without wildcards, none of them beginning with $ or with PINWHEEL_PREFIX and a dot, and a dot after {owner}"`
	AllowPrivateAddresses List `split_words:"true" meaning:"Addresses that are not public and that fetch(), WebSocket and TCP sockets in a worker may reach all the same: private, loopback, link-local and other special ones. Empty: none" allowed:"host names, IP addresses and CIDR ranges with a comma between them"`
}

// Variable describes a variable of the environment.
type Variable struct {
	Name    string
	Default string // "" = empty
	Meaning string
	Allowed string
	// File is the variable that names a file with the value; "" = there is none. Variables whose values are secrets have
	// one.
	File string
}

// Variables lists every variable that Pinwheel reads, in the order of Config.
func Variables() []Variable {
	t := reflect.TypeFor[Config]()
	vs := make([]Variable, t.NumField())
	for i := range vs {
		f := t.Field(i)
		vs[i] = Variable{
			Name: variableName(f.Name), Default: f.Tag.Get("default"), Meaning: f.Tag.Get("meaning"),
			Allowed: f.Tag.Get("allowed"),
		}
		if isSecret(f) {
			vs[i].File = vs[i].Name + fileSuffix
		}
	}
	return vs
}

var (
	wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronym   = regexp.MustCompile(`([A-Z]+)([A-Z][a-z])`)
)

// variableName is the name that envconfig gives a field with split_words.
func variableName(field string) string {
	field = acronym.ReplaceAllString(field, "${1}_${2}")
	return EnvPrefix + "_" + strings.ToUpper(wordStart.ReplaceAllString(field, "${1}_${2}"))
}

// Load reads the environment. The error names every variable that is unknown or has a wrong value. It also names the
// value and the allowed ones. A process with such a variable must not start.
func Load() (Config, error) {
	if err := inheritSecrets(); err != nil {
		return Config{}, err
	}
	if err := unknownVariables(os.Environ()); err != nil {
		return Config{}, err
	}
	var c Config
	if err := envconfig.Process(EnvPrefix, &c); err != nil {
		var pe *envconfig.ParseError
		if errors.As(err, &pe) {
			return Config{}, wrongValue(pe.KeyName, pe.Value)
		}
		return Config{}, fmt.Errorf("read environment: %w", err)
	}
	if err := c.readFiles(os.Getenv); err != nil {
		return Config{}, err
	}
	return c, c.Validate()
}

// values iterates over the fields with their values as variables have them.
func (c Config) values() iter.Seq2[reflect.StructField, string] {
	return func(yield func(reflect.StructField, string) bool) {
		v := reflect.ValueOf(c)
		for i := range v.NumField() {
			if !yield(v.Type().Field(i), fmt.Sprint(v.Field(i).Interface())) {
				return
			}
		}
	}
}

// wrongValue quotes what the variable's declaration allows.
func wrongValue(name, value string) error {
	vs := Variables()
	i := slices.IndexFunc(vs, func(v Variable) bool { return v.Name == name })
	err := fmt.Errorf("%s is %q: it is %s", name, value, vs[i].Allowed)
	if strings.HasPrefix(value, "tcp://") {
		err = fmt.Errorf("%w (Kubernetes sets it for a Service of that name; enableServiceLinks: false stops that)", err)
	}
	return err
}

// Validate checks every field. It returns one error for each wrong variable.
func (c Config) Validate() error {
	errs := c.acmeFaults()
	for _, check := range c.checks() {
		if !check.ok {
			errs = append(errs, wrongValue(variableName(check.field), fmt.Sprint(check.value)))
		}
	}
	return errors.Join(errs...)
}

// check says whether the value of a field is allowed.
type check struct {
	field string
	value any
	ok    bool
}

func between(v, lo, hi int) bool { return v >= lo && v <= hi }

func (c Config) checks() []check {
	return slices.Concat(c.httpChecks(), c.acmeChecks(), c.consoleChecks(), c.otherChecks())
}

func (c Config) consoleChecks() []check {
	return []check{
		{"ConsoleAddr", c.ConsoleAddr, validAddress(c.ConsoleAddr)},
		{"ConsoleToken", hidden(c.ConsoleToken), validToken(c.ConsoleToken) &&
			(c.ConsoleToken == "" || c.ConsoleToken != c.ControlToken)},
		{"ConsoleHosts", c.ConsoleHosts,
			!slices.ContainsFunc(c.ConsoleHosts, func(h string) bool { return h != strings.ToLower(h) || notAHost(h) })},
		{"ConsoleTraceURL", c.ConsoleTraceURL, c.ConsoleTraceURL == "" || validTraceURL(c.ConsoleTraceURL)},
	}
}

func (c Config) httpChecks() []check {
	return []check{
		{"HTTPAddr", c.HTTPAddr, validAddress(c.HTTPAddr)},
		{"HTTPCert", c.HTTPCert, c.HTTPCert == "" && c.HTTPKey == "" || readable(c.HTTPCert)},
		{"HTTPKey", c.HTTPKey, c.HTTPKey == "" && c.HTTPCert == "" || readable(c.HTTPKey)},
		{"HTTPDomain", c.HTTPDomain, c.HTTPDomain == "" || c.HTTPDomain == strings.ToLower(c.HTTPDomain) &&
			!notAHost(c.HTTPDomain)},
		{"HTTPPaths", c.HTTPPaths, c.HTTPPaths == "" || events.ValidName(c.HTTPPaths)},
		{"HTTPHosts", c.HTTPHosts, c.validHosts()},
		{"HTTPTrust", c.HTTPTrust, c.validTrust()},
		{"HTTPMaxConnections", c.HTTPMaxConnections, between(c.HTTPMaxConnections, 1, 1_000_000)},
		{"MetricsOwners", c.MetricsOwners, len(c.MetricsOwners) <= 100 && !slices.ContainsFunc(c.MetricsOwners,
			func(name string) bool { return !events.ValidName(name) })},
		{"TraceOwnerRate", c.TraceOwnerRate, between(c.TraceOwnerRate, 1, 1_000_000)},
		{"HTTPOwnerRequests", c.HTTPOwnerRequests, between(c.HTTPOwnerRequests, 1, 1_000_000)},
		{"HTTPMemory", c.HTTPMemory, c.HTTPMemory >= 1<<20},
		{"HTTPMaxBody", c.HTTPMaxBody, c.HTTPMaxBody >= 1<<10 && c.HTTPMaxBody <= 1<<40},
		{"HTTPCache", c.HTTPCache, c.HTTPCache >= 0},
		{"AssetsMaxBytes", c.AssetsMaxBytes, c.AssetsMaxBytes == 0 || c.AssetsMaxBytes >= 1<<20},
		{"WorkersMaxBytes", c.WorkersMaxBytes, c.WorkersMaxBytes == 0 || c.WorkersMaxBytes >= 1<<20},
		{"OwnerKVBytes", c.OwnerKVBytes, c.OwnerKVBytes >= 64<<10},
		{"OwnerCacheBytes", c.OwnerCacheBytes, c.OwnerCacheBytes >= 1<<20},
		{"HTTPWait", c.HTTPWait, c.HTTPWait >= 100*time.Millisecond && c.HTTPWait <= 15*time.Minute},
	}
}

func (c Config) otherChecks() []check {
	return []check{
		{"NatsURL", hiddenURL(c.NatsURL), validNATSURL(c.NatsURL)},
		{"NatsContext", c.NatsContext, c.NatsContext == "" || c.NatsURL == ""},
		{"Sources", c.Sources, c.SourceContexts() != nil},
		{"NatsCreds", c.NatsCreds, c.NatsCreds == "" || readable(c.NatsCreds)},
		{"NatsUser", c.NatsUser, c.NatsUser == "" || c.oneIdentity()},
		{"NatsPassword", hidden(c.NatsPassword), c.NatsPassword == "" || c.NatsUser != ""},
		{"NatsToken", hidden(c.NatsToken), c.NatsToken == "" || c.oneIdentity()},
		{"NatsNkey", c.NatsNkey, c.NatsNkey == "" || c.oneIdentity() && readable(c.NatsNkey)},
		{"NatsCA", c.NatsCA, c.NatsCA == "" || readable(c.NatsCA)},
		{"NatsCert", c.NatsCert, c.NatsCert == "" && c.NatsKey == "" || readable(c.NatsCert)},
		{"NatsKey", c.NatsKey, c.NatsKey == "" && c.NatsCert == "" || readable(c.NatsKey)},
		{"Owner", c.Owner, c.Owner == "" || events.ValidName(c.Owner)},
		{"NatsMonitor", c.NatsMonitor, !slices.ContainsFunc(c.NatsMonitor, notAMonitor)},
		{"NatsPort", c.NatsPort, c.NatsPort == -1 || between(c.NatsPort, 1, 65535)},
		{"Data", c.Data, c.Data != ""},
		{"AdminAddr", c.AdminAddr, validAddress(c.AdminAddr)},
		{"Control", c.Control, c.Control == "" || c.Control == ControlByPermissions && c.ControlToken == ""},
		{"ControlToken", hidden(c.ControlToken), validToken(c.ControlToken)},
		{"SecretsKey", c.SecretsKey, c.SecretsKey == "" || readable(c.SecretsKey)},
		{"LogLevel", c.LogLevel, slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel)},
		{"LogFormat", c.LogFormat, slices.Contains([]string{"auto", "console", "json"}, c.LogFormat)},
		{"Processes", c.Processes, between(c.Processes, 0, supervisor.MaxProcesses)},
		{"Confine", c.Confine, slices.Contains([]string{"on", ConfineRequire, ConfineOff}, c.Confine)},
		{"Cell", c.Cell, c.Cell != "" && workers.Cell(c.Cell).Check() == nil},
		{"CellConfine", c.CellConfine, slices.Contains([]string{"on", ConfineRequire, ConfineOff}, c.CellConfine)},
		{"Threads", c.Threads, between(c.Threads, 0, MaxThreads)},
		{"BackgroundThreads", c.BackgroundThreads, between(c.BackgroundThreads, -1, MaxThreads)},
		{"Slots", c.Slots, between(c.Slots, 1, 10_000)},
		{"Window", c.Window, between(c.Window, 32, 1<<20)},
		{"Compilers", c.Compilers, c.Compilers != "" && workers.Compilers(c.Compilers).Valid()},
		{"MaxCells", c.MaxCells, between(c.MaxCells, 1, 250)},
		{"MaxIsolates", c.MaxIsolates, between(c.MaxIsolates, 1, 2000)},
		{"HeapMax", c.HeapMax, c.HeapMax == 0 || c.HeapMax >= 64<<20},
		{"OwnerMaxIsolates", c.OwnerMaxIsolates, between(c.OwnerMaxIsolates, 0, c.MaxIsolates)},
		{"OwnerHeapMax", c.OwnerHeapMax, c.OwnerHeapMax == 0 || c.OwnerHeapMax >= 1<<20},
		{"OwnerMaxRunning", c.OwnerMaxRunning, between(c.OwnerMaxRunning, 0, 640_000)},
		{"OwnerMaxWaiting", c.OwnerMaxWaiting, between(c.OwnerMaxWaiting, 0, 100_000_000)},
		{"Overtake", c.Overtake, between(c.Overtake, 0, 100_000_000)},
		{"OwnerMaxQueued", c.OwnerMaxQueued, between(c.OwnerMaxQueued, 1, 1_000_000)},
		{"AckWait", c.AckWait, c.AckWait >= 200*time.Millisecond && c.AckWait <= time.Hour},
		{"OldVersionIdle", c.OldVersionIdle, c.OldVersionIdle >= time.Second && c.OldVersionIdle <= 24*time.Hour},
		{"DrainTimeout", c.DrainTimeout, c.DrainTimeout >= 0 && c.DrainTimeout <= time.Hour},
		{"DeadLetterAge", c.DeadLetterAge, c.DeadLetterAge >= time.Minute},
		{"DeadLetterBytes", c.DeadLetterBytes, c.DeadLetterBytes >= 1<<20},
		{"Runs", c.Runs, c.Runs == RunsOff || workers.KeepRuns(c.Runs).Check() == nil},
		{"RunsAge", c.RunsAge, c.RunsAge >= time.Minute},
		{"RunsBytes", c.RunsBytes, c.RunsBytes >= 1<<20},
		{"Durability", c.Durability, c.Durability == "default" || c.Durability == "fsync"},
		{"Duplicates", c.Duplicates, c.Duplicates >= 100*time.Millisecond && c.Duplicates <= 24*time.Hour},
		{"ResultAge", c.ResultAge, c.ResultAge >= time.Second && c.ResultAge <= 720*time.Hour},
		{"MaxBytes", c.MaxBytes, c.MaxBytes >= 1<<20},
		{"Replicas", c.Replicas, c.Replicas == 1 || c.Replicas == 3 || c.Replicas == 5},
		{"Prefix", c.Prefix, events.ValidName(c.Prefix)},
		{"ReplyPrefixes", c.ReplyPrefixes, c.validReplyPrefixes()},
		{"AllowPrivateAddresses", c.AllowPrivateAddresses, !slices.ContainsFunc(c.AllowPrivateAddresses, notAHost)},
	}
}

// ClientURL is where commands that embed no NATS find the fleet's NATS.
func (c Config) ClientURL() string {
	if c.NatsURL != "" {
		return c.NatsURL
	}
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.NatsPort))
}

// validToken reports whether s is hard to guess and fits in a header.
func validToken(s string) bool {
	return s == "" || len(s) >= 16 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func validTraceURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Contains(s, "{trace}")
}

func validAddress(s string) bool {
	if s == "" {
		return true
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}

func (c Config) validHosts() bool {
	return !slices.ContainsFunc(c.HTTPHosts,
		func(h string) bool { return h != workers.AnyHost && workers.CheckHost(h) != nil })
}

func (c Config) validTrust() bool {
	_, hosts := SplitAddresses(c.HTTPTrust)
	return len(hosts) == 0
}

func (c Config) validReplyPrefixes() bool {
	return len(c.ReplyPrefixes) > 0 && !slices.ContainsFunc(c.ReplyPrefixes,
		func(p string) bool { return events.CheckReplyPrefix(p, events.Subjects(c.Prefix)) != nil })
}
