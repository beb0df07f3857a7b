package config

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
)

// SecretsVariable tells a supervisor's child the descriptor of a file with the variables that its environment has not.
const SecretsVariable = "_" + EnvPrefix + "_SECRETS"

// childVariables are the variables of other programs and libraries that a child has. Names that end with _ are
// beginnings. No other variable of the supervisor reaches a child.
var childVariables = []string{
	"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE",
	"TZ", "ZONEINFO", "LANG", "LANGUAGE", "LC_", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH",
	"LOCALDOMAIN", "RES_OPTIONS", "NO_PROXY", "no_proxy", "HOME", "XDG_CONFIG_HOME", // of the NATS context
	"OTEL_", "_" + EnvPrefix + "_", "UNGUARDED", // of builds for tests
}

// secretVariables are those that a child has, and that may hold secrets. Headers of OTEL_* variables are others.
var secretVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// ForChild returns the environment of a child of this process, with the configuration c, and the variables that may
// hold secrets, for the file that SecretsVariable names.
func (c Config) ForChild() (environ []string, secrets []byte) {
	hidden := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		of := func(list []string) bool {
			return slices.ContainsFunc(list, func(v string) bool {
				return v == name || strings.HasSuffix(v, "_") && strings.HasPrefix(name, v)
			})
		}
		switch {
		case of(secretVariables), strings.HasPrefix(name, "OTEL_") && strings.HasSuffix(name, "_HEADERS"):
			hidden[name] = value
		case of(childVariables):
			environ = append(environ, entry)
		}
	}
	for field, value := range c.values() {
		name := variableName(field.Name)
		if isSecret(field) && value != "" {
			hidden[name] = value
		} else {
			environ = append(environ, name+"="+value)
		}
	}
	secrets, err := json.Marshal(hidden)
	if err != nil {
		panic(err) // texts have JSON
	}
	return environ, secrets
}

// inheritSecrets adds what the supervisor has put beside the environment of a child to the environment of this process.
// The kernel shows others only that with which a process was started.
func inheritSecrets() error {
	descriptor := os.Getenv(SecretsVariable)
	if descriptor == "" {
		return nil
	}
	n, err := strconv.Atoi(descriptor)
	if err != nil {
		return fmt.Errorf("%s is %q: it is a number", SecretsVariable, descriptor)
	}
	f := os.NewFile(uintptr(n), "secrets")
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("secrets of the supervisor: %w", err)
	}
	var hidden map[string]string
	if err := json.Unmarshal(text, &hidden); err != nil {
		return fmt.Errorf("secrets of the supervisor: %w", err)
	}
	for name, value := range hidden {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Unsetenv(SecretsVariable)
}

// ChildReads are the files, and directories, that a child reads for this configuration. Of files that others replace
// while it runs it is the directory.
func (c Config) ChildReads() (paths []string) {
	paths = append(paths, c.SecretsKey, c.HTTPAcmeCA)
	for _, path := range []string{c.HTTPCert, c.HTTPKey, c.NatsCreds, c.NatsNkey, c.NatsCA, c.NatsCert, c.NatsKey} {
		paths = append(paths, confine.Replaced(path)...)
	}
	if c.NatsContext != "" {
		paths = append(paths, contextFiles(c.NatsContext)...)
	}
	for _, name := range c.SourceContexts() {
		paths = append(paths, contextFiles(name)...)
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "OTEL_") && (strings.HasSuffix(name, "_CERTIFICATE") || strings.HasSuffix(name, "_KEY")) {
			paths = append(paths, confine.Replaced(value)...)
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// contextFiles are the files of a NATS context: its own, and those that it names.
func contextFiles(name string) (paths []string) {
	home, _ := os.UserHomeDir()
	parent := os.Getenv("XDG_CONFIG_HOME")
	if parent == "" {
		parent = filepath.Join(home, ".config")
	}
	dir := filepath.Join(parent, "nats")
	paths = append(paths, filepath.Join(dir, "context.txt"), filepath.Join(dir, "context"))
	text, err := os.ReadFile(filepath.Join(dir, "context", name+".json"))
	if err != nil {
		return paths
	}
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return paths
	}
	for _, v := range fields {
		path, _ := v.(string)
		if rest, ok := strings.CutPrefix(path, "~"); ok {
			path = home + rest
		}
		if filepath.IsAbs(path) && readable(path) {
			paths = append(paths, confine.Replaced(path)...)
		}
	}
	return paths
}
