package secrets

import (
	"fmt"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// everyWorker stands in a key in place of a worker. No worker can have this name.
const everyWorker = "="

// Name says which secret it is.
type Name struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker,omitempty"` // "" = all workers of the owner
	Name   string `json:"name"`             // in env
}

// Validate returns an error that says what is wrong and what is allowed.
func (n Name) Validate() error {
	if err := events.CheckName("owner", n.Owner); err != nil {
		return err
	}
	if n.Worker != "" {
		if err := events.CheckName("worker", n.Worker); err != nil {
			return err
		}
	}
	return events.CheckEnvName(n.Name)
}

// Key is the key in the bucket: OWNER.WORKER.NAME, or OWNER.=.NAME.
func (n Name) Key() string {
	worker := n.Worker
	if worker == "" {
		worker = everyWorker
	}
	return n.Owner + "." + worker + "." + n.Name
}

// ParseKey is the inverse of Key.
func ParseKey(key string) (Name, error) {
	parts := strings.Split(key, ".")
	if len(parts) != 3 {
		return Name{}, fmt.Errorf("key %q of a secret: it is OWNER.WORKER.NAME, with = as WORKER for all of the owner's", key)
	}
	n := Name{parts[0], parts[1], parts[2]}
	switch n.Worker {
	case everyWorker:
		n.Worker = ""
	case "":
		return Name{}, fmt.Errorf("key %q of a secret has no worker", key)
	}
	if err := n.Validate(); err != nil {
		return Name{}, fmt.Errorf("key %q of a secret: %w", key, err)
	}
	return n, nil
}

// Scope is "OWNER/WORKER", or "OWNER".
func (n Name) Scope() string {
	if n.Worker == "" {
		return n.Owner
	}
	return n.Owner + "/" + n.Worker
}

// String is the name as the command line has it, "OWNER/WORKER NAME".
func (n Name) String() string { return n.Scope() + " " + n.Name }
