package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clean hides the variables of the environment in which the test runs.
func clean(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, EnvPrefix) {
			t.Setenv(name, "") // so that it is restored
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

// environ returns the environment from which Load returns c.
func environ(c Config) (list []string) {
	for field, value := range c.values() {
		list = append(list, variableName(field.Name)+"="+value)
	}
	return list
}

func TestDefaultsAreValid(t *testing.T) {
	clean(t)
	t.Setenv("THREADS", "7")      // names without the prefix belong to other programs
	t.Setenv("DATA", "elsewhere") // even if envconfig would read them
	c, err := Load()
	require.NoError(t, err)
	require.Equal(t, Config{
		NatsPort: 4222, Data: ".pinwheel", AdminAddr: "127.0.0.1:8422", LogLevel: "info", LogFormat: "auto",
		Processes: 1, Confine: "on", Cell: "shared", MaxCells: 100, CellConfine: "on",
		BackgroundThreads: -1, Slots: 64, Window: 4096, MaxIsolates: 500,
		Compilers:       "full",
		OwnerMaxWaiting: 100_000, Overtake: 10_000, OwnerMaxQueued: 512,
		AckWait: 30 * time.Second, OldVersionIdle: time.Minute, DrainTimeout: 30 * time.Second,
		RunsAge: 168 * time.Hour, RunsBytes: 192 << 20,
		DeadLetterAge: 720 * time.Hour, DeadLetterBytes: 1 << 30, Durability: "default", Duplicates: 2 * time.Minute,
		ResultAge: 24 * time.Hour, MaxBytes: 2 << 30, OwnerKVBytes: 16 << 20, WorkersMaxBytes: 512 << 20,
		AssetsMaxBytes:  512 << 20,
		OwnerCacheBytes: 8 << 20, Replicas: 1, Prefix: "pinwheel",
		ReplyPrefixes:      List{"_INBOX."},
		HTTPMaxConnections: 10_000, HTTPOwnerRequests: 1000, TraceOwnerRate: 100, HTTPMemory: 256 << 20, HTTPMaxBody: 1 << 30,
		HTTPCache: 64 << 20, HTTPWait: 30 * time.Second, HTTPLog: true, HTTPAcmeOwnerHosts: 20,
	}, c)
	require.Equal(t, c, Default())
	require.Equal(t, "nats://127.0.0.1:4222", c.ClientURL())
}

func TestEveryVariableIsReadUnderItsName(t *testing.T) {
	clean(t)
	creds := t.TempDir() + "/user.creds"
	require.NoError(t, os.WriteFile(creds, []byte("x"), 0o600))
	values := map[string]string{
		"PINWHEEL_NATS_URL": "nats://a:4222, tls://b", "PINWHEEL_NATS_CONTEXT": "", "PINWHEEL_NATS_CREDS": creds,
		"PINWHEEL_NATS_PORT": "-1",
		"PINWHEEL_NATS_USER": "", "PINWHEEL_NATS_PASSWORD": "", "PINWHEEL_NATS_TOKEN": "", "PINWHEEL_OWNER": "acme",
		"PINWHEEL_NATS_NKEY": "",
		"PINWHEEL_NATS_CA":   creds, "PINWHEEL_NATS_CERT": creds, "PINWHEEL_NATS_KEY": creds,
		"PINWHEEL_NATS_MONITOR":    "http://a:8222,https://b",
		"PINWHEEL_DEAD_LETTER_AGE": "1h", "PINWHEEL_DEAD_LETTER_BYTES": "2MiB",
		"PINWHEEL_DURABILITY": "fsync", "PINWHEEL_RUNS": "2.5%", "PINWHEEL_RUNS_AGE": "2h",
		"PINWHEEL_RUNS_BYTES": "3MiB", "PINWHEEL_PROFILING": "true", "PINWHEEL_SOURCES": "a,b=c",
		"PINWHEEL_CONTROL": "", "PINWHEEL_CONTROL_TOKEN": "0123456789abcdef", "PINWHEEL_SECRETS_KEY": creds,
		"PINWHEEL_DATA": "/d", "PINWHEEL_ADMIN_ADDR": ":0", "PINWHEEL_LOG_LEVEL": "warn", "PINWHEEL_LOG_FORMAT": "json",
		"PINWHEEL_CONFINE": "require",
		"PINWHEEL_CELL":    "guests", "PINWHEEL_MAX_CELLS": "9", "PINWHEEL_CELL_CONFINE": "off",
		"PINWHEEL_PROCESSES": "4", "PINWHEEL_THREADS": "2", "PINWHEEL_BACKGROUND_THREADS": "1", "PINWHEEL_SLOTS": "3",
		"PINWHEEL_WINDOW": "100", "PINWHEEL_MAX_ISOLATES": "5",
		"PINWHEEL_HEAP_MAX":           "128MiB",
		"PINWHEEL_OWNER_MAX_ISOLATES": "4", "PINWHEEL_OWNER_HEAP_MAX": "64MiB",
		"PINWHEEL_OWNER_MAX_RUNNING": "6", "PINWHEEL_OWNER_MAX_QUEUED": "7", "PINWHEEL_OWNER_MAX_WAITING": "8",
		"PINWHEEL_OVERTAKE": "9", "PINWHEEL_ACK_WAIT": "1s", "PINWHEEL_OLD_VERSION_IDLE": "5s",
		"PINWHEEL_DRAIN_TIMEOUT": "0s",
		"PINWHEEL_DUPLICATES":    "1h", "PINWHEEL_RESULT_AGE": "1m", "PINWHEEL_MAX_BYTES": "500MB", "PINWHEEL_REPLICAS": "3",
		"PINWHEEL_PREFIX": "pw", "PINWHEEL_REPLY_PREFIXES": "_INBOX., replies.",
		"PINWHEEL_CONSOLE_ADDR": ":8423", "PINWHEEL_CONSOLE_TOKEN": "fedcba9876543210",
		"PINWHEEL_CONSOLE_HOSTS": "console.example", "PINWHEEL_CONSOLE_TRACE_URL": "https://traces.example/{trace}",
		"PINWHEEL_HTTP_ADDR": ":80", "PINWHEEL_HTTP_CERT": creds, "PINWHEEL_HTTP_KEY": creds,
		"PINWHEEL_HTTP_DOMAIN": "w.example", "PINWHEEL_HTTP_PATHS": "acme", "PINWHEEL_HTTP_TRUST": "10.0.0.1,fd00::/8",
		"PINWHEEL_HTTP_HOSTS":           "*.a.example,*",
		"PINWHEEL_HTTP_MAX_CONNECTIONS": "10", "PINWHEEL_HTTP_OWNER_REQUESTS": "9", "PINWHEEL_TRACE_OWNER_RATE": "5",
		"PINWHEEL_COMPILERS":      "baseline",
		"PINWHEEL_METRICS_OWNERS": "acme,beta", "PINWHEEL_HTTP_MEMORY": "2MiB", "PINWHEEL_HTTP_MAX_BODY": "1MiB",
		"PINWHEEL_HTTP_CACHE": "0", "PINWHEEL_ASSETS_MAX_BYTES": "3MiB", "PINWHEEL_WORKERS_MAX_BYTES": "4MiB",
		"PINWHEEL_OWNER_KV_BYTES": "5MiB", "PINWHEEL_OWNER_CACHE_BYTES": "6MiB", "PINWHEEL_HTTP_WAIT": "1s",
		// TestACMESettings has the others
		"PINWHEEL_HTTP_ACME": "", "PINWHEEL_HTTP_ACME_EMAIL": "", "PINWHEEL_HTTP_ACME_CA": "",
		"PINWHEEL_HTTP_ACME_OWNER_HOSTS": "7",
		"PINWHEEL_HTTP_MESSAGES":         "true", "PINWHEEL_HTTP_LOG": "false",
		"PINWHEEL_ALLOW_PRIVATE_ADDRESSES": "10.0.0.0/8,::1 , db.internal,localhost",
	}
	var names []string
	for _, v := range Variables() {
		names = append(names, v.Name)
		require.NotEmpty(t, v.Meaning, v.Name)
		require.NotEmpty(t, v.Allowed, v.Name)
		value, ok := values[v.Name]
		require.True(t, ok, v.Name)
		t.Setenv(v.Name, value)
	}
	require.Len(t, names, len(values))
	c, err := Load()
	require.NoError(t, err)
	require.Equal(t, Config{
		NatsURL: "nats://a:4222, tls://b", NatsCreds: creds, SecretsKey: creds, Owner: "acme", NatsPort: -1, Data: "/d",
		AdminAddr: ":0", LogLevel: "warn", LogFormat: "json",
		Processes: 4, Confine: "require", Cell: "guests", MaxCells: 9, CellConfine: "off",
		Threads: 2, BackgroundThreads: 1, Slots: 3, Window: 100, MaxIsolates: 5, HeapMax: 128 << 20,
		OwnerMaxIsolates: 4, OwnerHeapMax: 64 << 20, Compilers: "baseline",
		OwnerMaxRunning: 6, OwnerMaxQueued: 7, OwnerMaxWaiting: 8, Overtake: 9, AckWait: time.Second,
		OldVersionIdle: 5 * time.Second,
		NatsCA:         creds, NatsCert: creds, NatsKey: creds, NatsMonitor: List{"http://a:8222", "https://b"},
		DeadLetterAge: time.Hour, DeadLetterBytes: 2 << 20, Durability: "fsync",
		Runs: "2.5%", RunsAge: 2 * time.Hour, RunsBytes: 3 << 20, Profiling: true,
		Sources:      List{"a", "b=c"},
		ControlToken: "0123456789abcdef",
		Duplicates:   time.Hour, ResultAge: time.Minute, MaxBytes: 500e6, Replicas: 3, Prefix: "pw",
		ReplyPrefixes: List{"_INBOX.", "replies."},
		ConsoleAddr:   ":8423", ConsoleToken: "fedcba9876543210", ConsoleHosts: List{"console.example"},
		ConsoleTraceURL: "https://traces.example/{trace}",
		HTTPAddr:        ":80", HTTPCert: creds, HTTPKey: creds, HTTPDomain: "w.example", HTTPPaths: "acme",
		HTTPTrust: List{"10.0.0.1", "fd00::/8"}, HTTPHosts: List{"*.a.example", "*"}, HTTPMaxConnections: 10,
		HTTPOwnerRequests: 9, TraceOwnerRate: 5, MetricsOwners: List{"acme", "beta"},
		HTTPMemory: 2 << 20, HTTPMaxBody: 1 << 20, AssetsMaxBytes: 3 << 20, WorkersMaxBytes: 4 << 20, OwnerKVBytes: 5 << 20,
		OwnerCacheBytes: 6 << 20, HTTPWait: time.Second, HTTPMessages: true, HTTPAcmeOwnerHosts: 7,
		AllowPrivateAddresses: List{"10.0.0.0/8", "::1", "db.internal", "localhost"},
	}, c)
	require.Equal(t, c.NatsURL, c.ClientURL())

	// A supervisor's child gets its configuration back from the environment.
	for _, entry := range environ(c) {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	again, err := Load()
	require.NoError(t, err)
	require.Equal(t, c, again)
}

func TestWrongValuesAreNamed(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"NATS_URL", "localhost:4222", "it is URLs like nats://host:4222"},
		{"NATS_URL", "http://h", "it is URLs like"},
		{"CELL", "two words", `PINWHEEL_CELL is "two words": it is shared, own, or a name of 1 to 64 of`},
		{"CELL", "", "it is shared, own, or a name of 1 to 64 of"},
		{"CELL_CONFINE", "yes", `PINWHEEL_CELL_CONFINE is "yes": it is one of on, require, off`},
		{"COMPILERS", "jitless", `PINWHEEL_COMPILERS is "jitless": it is one of full, baseline, none`},
		{"COMPILERS", "", "it is one of full, baseline, none"},
		{"NATS_CREDS", "/no/such/file", "it is the path of a readable file"},
		{"SECRETS_KEY", "/no/such/file", "it is the path of a readable file"},
		{"NATS_NKEY", "/no/such/file", "it is the path of a readable file"},
		{"NATS_CA", "/no/such/file", "it is the path of a readable file"},
		{"NATS_CERT", "/no/such/file", "it is the path of a readable file"},
		{"NATS_MONITOR", "host:8222", "it is URLs like http://host:8222"},
		{"DEAD_LETTER_BYTES", "1KiB", "it is a size from 1MiB"},
		{"DEAD_LETTER_AGE", "1s", "it is a duration from 1m"},
		{"DURABILITY", "full", "it is default or fsync"},
		{"REPLY_PREFIXES", "_INBOX_{owner}", "and a dot after {owner}"},
		{"NATS_PORT", "0", "it is 1 to 65535, or -1 for a free one"},
		{"NATS_PORT", "tcp://10.0.0.1:4222", "enableServiceLinks: false"},
		{"DATA", "", "it is a path"},
		{"PROCESSES", "-1", "it is 0 to 64"},
		{"PROCESSES", "65", "it is 0 to 64"},
		{"PROCESSES", "two", "it is 0 to 64"},
		{"ADMIN_ADDR", "8422", "it is host:port, or empty"},
		{"CONSOLE_ADDR", "8423", "it is host:port, or empty"},
		{"CONSOLE_HOSTS", "Console.example", "it is host names in lower case"},
		{"CONSOLE_HOSTS", "a.example:80", "it is host names in lower case"},
		{"CONSOLE_TRACE_URL", "https://traces.example/", "it is an http or https URL with {trace}"},
		{"CONSOLE_TRACE_URL", "javascript:{trace}", "it is an http or https URL with {trace}"},
		{"HTTP_ADDR", "8787", "it is host:port, or empty"},
		{"HTTP_DOMAIN", "Example.com", "it is a host name in lower case"},
		{"HTTP_DOMAIN", "*.example.com", "it is a host name in lower case"},
		{"HTTP_PATHS", "a.b", "it is the name of an owner"},
		{"HTTP_HOSTS", "a.example:80", "it is host names in lower case"},
		{"HTTP_TRUST", "proxy", "it is IP addresses and CIDR ranges"},
		{"HTTP_MAX_CONNECTIONS", "0", "it is 1 to 1000000"},
		{"HTTP_OWNER_REQUESTS", "0", "it is 1 to 1000000"},
		{"HTTP_MEMORY", "1", "it is a size from 1MiB"},
		{"HTTP_MAX_BODY", "1", "it is a size from 1KiB to 1TiB"},
		{"HTTP_WAIT", "1h", "it is a duration from 100ms to 15m"},
		{"LOG_LEVEL", "verbose", "it is one of debug, info, warn, error"},
		{"LOG_FORMAT", "text", "it is one of auto, console, json"},
		{"THREADS", "two", "it is 0 to 64"},
		{"THREADS", "", "it is 0 to 64"},
		{"THREADS", "65", "it is 0 to 64"},
		{"WINDOW", "31", "it is 32 to 1048576"},
		{"ACK_WAIT", "30", "it is a duration from 200ms to 1h"},
		{"DRAIN_TIMEOUT", "-1s", "it is a duration from 0s to 1h"},
		{"DUPLICATES", "50ms", "it is a duration from 100ms to 24h"},
		{"RESULT_AGE", "31d", "it is a duration from 1s to 720h"},
		{"ASSETS_MAX_BYTES", "1KB", "it is a size from 1MiB, or 0"},
		{"MAX_BYTES", "2G", "it is a size from 1MiB"},
		{"MAX_BYTES", "1KB", "it is a size from 1MiB"},
		{"MAX_BYTES", "9999999999TB", "it is a size from 1MiB"},
		{"REPLICAS", "2", "it is 1, 3 or 5"},
		{"PREFIX", "a.b", "it is 1 to 64 of"},
		{"REPLY_PREFIXES", "", "it is subject prefixes"},
		{"REPLY_PREFIXES", "_INBOX.,$JS.", "it is subject prefixes"},
		{"REPLY_PREFIXES", "pinwheel.events.", "it is subject prefixes"},
		{"ALLOW_PRIVATE_ADDRESSES", "10.0.0.0/33", "it is host names, IP addresses and CIDR ranges"},
		{"ALLOW_PRIVATE_ADDRESSES", "10.0.0.300", "it is host names, IP addresses and CIDR ranges"},
		{"ALLOW_PRIVATE_ADDRESSES", "http://x", "it is host names, IP addresses and CIDR ranges"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			clean(t)
			t.Setenv("PINWHEEL_"+c.name, c.value)
			_, err := Load()
			require.ErrorContains(t, err, "PINWHEEL_"+c.name+" is \"")
			require.ErrorContains(t, err, c.want)
			if c.name != "MAX_BYTES" {
				require.ErrorContains(t, err, c.value)
			}
		})
	}
	clean(t)
	t.Setenv("PINWHEEL_NATS_USER", "u")
	t.Setenv("PINWHEEL_NATS_TOKEN", "very secret")
	_, err := Load()
	require.ErrorContains(t, err, `PINWHEEL_NATS_USER is "u": it is a name, and then no other credentials`)
	require.NotContains(t, err.Error(), "very secret")
	clean(t)
	t.Setenv("PINWHEEL_NATS_URL", "nats://a")
	t.Setenv("PINWHEEL_NATS_CONTEXT", "prod")
	_, err = Load()
	require.EqualError(t, err, `PINWHEEL_NATS_CONTEXT is "prod": it is the name of a context, and only when PINWHEEL_NATS_URL is empty`)
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	clean(t)
	t.Setenv("PINWHEEL_TREADS", "4")
	t.Setenv("PINWHEEL_LOGLEVEL", "info")
	_, err := Load()
	require.ErrorContains(t, err, `unknown variable PINWHEEL_TREADS is "4": did you mean PINWHEEL_THREADS?`)
	require.ErrorContains(t, err, `unknown variable PINWHEEL_LOGLEVEL is "info": did you mean PINWHEEL_LOG_LEVEL?`)

	require.NoError(t, unknownVariables([]string{
		"PINWHEEL_SERVICE_HOST=10.0.0.1", "PINWHEEL_SERVICE_PORT=8422", "PINWHEEL_SERVICE_PORT_ADMIN=8422",
		"PINWHEEL_PORT=tcp://10.0.0.1:8422",
		"PINWHEEL_PORT_8422_TCP=tcp://10.0.0.1:8422", "PINWHEEL_PORT_8422_TCP_ADDR=10.0.0.1",
		"PINWHEEL_ADMIN_SERVICE_HOST=10.0.0.1",
		"PINWHEELS=1", "PATH=/bin",
	}), "what Kubernetes sets is nobody's mistake")
	require.Error(t, unknownVariables([]string{"PINWHEEL_NAT_PORT=4222"}))
}

func TestRemovedVariablesAreRefused(t *testing.T) {
	clean(t)
	for _, v := range Variables() {
		require.NotContains(t, removed, v.Name)
	}
	t.Setenv("PINWHEEL_HEARTBEAT", "5s")
	_, err := Load()
	require.EqualError(t, err,
		"variable PINWHEEL_HEARTBEAT was removed: NATS confirms every 2 s that a lane without events is alive. Unset it")
	t.Setenv(ChildVariable, "0:socket")
	_, err = Load()
	require.NoError(t, err, "its supervisor may be an earlier binary, which passes all variables that it knows")
}

// Every variable that the files for operators set must exist.
func TestDeploymentFilesNameKnownVariables(t *testing.T) {
	known := Variables()
	const root = "../../../"
	paths := []string{root + "docker-compose.yml", root + "docker-compose.cluster.yml", root + "deploy/Dockerfile"}
	for _, pattern := range []string{"nats/*.conf", "systemd/*.service", "helm/pinwheel/*.*", "helm/pinwheel/templates/*",
		"kustomize/*.yaml", "kustomize/*/*.yaml", "kustomize/*/*/*.yaml"} {
		found, err := filepath.Glob(root + "deploy/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`PINWHEEL_[A-Z_]+[A-Z]`).FindAllString(string(text), -1) {
			require.True(t, slices.ContainsFunc(known, func(v Variable) bool { return v.Name == name || v.File == name }),
				"%s in %s", name, path)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "17": 17, "17B": 17, "1KB": 1000, "1KiB": 1024, "2 MB": 2e6, "3MiB": 3 << 20, "4GB": 4e9, "5GiB": 5 << 30,
		"6TB": 6e12, "7TiB": 7 << 40,
	} {
		var b Bytes
		require.NoError(t, b.Set(text))
		require.Equal(t, want, b, text)
		var again Bytes
		require.NoError(t, again.Set(b.String()))
		require.Equal(t, b, again)
	}
	for _, text := range []string{"", "B", "-1", "1.5GB", "1G", "GB", "99999999TiB", "0x10"} {
		require.Error(t, new(Bytes).Set(text), text)
	}
	require.Equal(t, "2GiB", Bytes(2<<30).String())
	require.Equal(t, "500MB", Bytes(500e6).String())
}

func TestControlTokensThatAreNone(t *testing.T) {
	for _, token := range []string{"short", "fifteen-letters", "with a space in it", "with-ümlaut-in-it"} {
		clean(t)
		t.Setenv("PINWHEEL_CONTROL_TOKEN", token)
		_, err := Load()
		require.EqualError(t, err, `PINWHEEL_CONTROL_TOKEN is "(a secret)": it is at least 16 printable characters without spaces, or empty`)
	}
	for _, token := range []string{"short", "0123456789abcdef"} {
		clean(t)
		t.Setenv("PINWHEEL_CONTROL_TOKEN", "0123456789abcdef")
		t.Setenv("PINWHEEL_CONSOLE_TOKEN", token)
		_, err := Load()
		require.EqualError(t, err, `PINWHEEL_CONSOLE_TOKEN is "(a secret)": it is at least 16 printable characters without spaces, other than PINWHEEL_CONTROL_TOKEN, or empty`)
	}
	clean(t)
	t.Setenv("PINWHEEL_CONTROL", "permissions")
	_, err := Load()
	require.NoError(t, err)
	t.Setenv("PINWHEEL_CONTROL_TOKEN", "0123456789abcdef")
	_, err = Load()
	require.EqualError(t, err, `PINWHEEL_CONTROL is "permissions": it is permissions, and only when PINWHEEL_CONTROL_TOKEN is empty, or empty`)
	t.Setenv("PINWHEEL_CONTROL_TOKEN", "")
	t.Setenv("PINWHEEL_CONTROL", "open")
	_, err = Load()
	require.ErrorContains(t, err, `PINWHEEL_CONTROL is "open"`)
}
