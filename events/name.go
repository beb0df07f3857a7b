package events

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxName is the longest owner or worker name, in bytes.
const MaxName = 64

// ValidName reports whether s may name an owner or a worker: [A-Za-z0-9_-]{1,64}.
// Such a name is one token of a NATS subject and of a KV key.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckName returns an error that says what is wrong with s as a name, or nil. what says of what: "owner" or "worker".
func CheckName(what, s string) error {
	if ValidName(s) {
		return nil
	}
	return fmt.Errorf("%s %q: a name is 1 to %d of A-Z a-z 0-9 _ -", what, s, MaxName)
}

// ParseTarget splits "owner/worker".
func ParseTarget(s string) (owner, worker string, err error) {
	owner, worker, ok := strings.Cut(s, "/")
	if !ok {
		return "", "", fmt.Errorf("worker %q: write it as OWNER/WORKER", s)
	}
	if err := CheckName("owner", owner); err != nil {
		return "", "", err
	}
	if err := CheckName("worker", worker); err != nil {
		return "", "", err
	}
	return owner, worker, nil
}

// Kind is the kind of an event. It decides which handler of the worker runs.
type Kind uint8

// The kinds of events. The zero Kind is none of them.
const (
	Fetch     Kind = 1 + iota // a request that wants a response
	Task                      // a unit of work with a JSON result
	Scheduled                 // a tick of a schedule
)

// Kinds lists every kind.
var Kinds = [...]Kind{Fetch, Task, Scheduled}

// String is the kind as in subjects: "fetch", "task", "scheduled".
func (k Kind) String() string {
	switch k {
	case Fetch:
		return "fetch"
	case Task:
		return "task"
	case Scheduled:
		return "scheduled"
	}
	return "unknown"
}

// ParseKind reads what String writes.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds {
		if s == k.String() {
			return k, nil
		}
	}
	return 0, fmt.Errorf("kind %q: it is one of fetch, task, scheduled", s)
}

// MarshalText writes a kind as String does.
func (k Kind) MarshalText() ([]byte, error) {
	if !slices.Contains(Kinds[:], k) {
		return nil, fmt.Errorf("kind %d: it is one of fetch, task, scheduled", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKind(string(text))
	return err
}

// MaxNote is the longest text that people write about a version, a deployment or a letter, in bytes.
const MaxNote = 1000

// CheckText checks a text that people write about a version or a deployment.
func CheckText(what, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) {
		return fmt.Errorf("%s has %d bytes: it is UTF-8 of at most %d", what, len(text), most)
	}
	return nil
}

// maxEnvName is the longest name in env, bytes.
const maxEnvName = 128

// CheckEnvName returns an error that begins with name, and says what is allowed, when name cannot be a name in env.
func CheckEnvName(name string) error {
	if !envName.MatchString(name) || len(name) > maxEnvName {
		return fmt.Errorf("%s is no name in env: it is A-Z a-z 0-9 _, not a digit first, at most %d bytes", name, maxEnvName)
	}
	return nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
