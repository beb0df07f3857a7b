package manifest

import (
	"reflect"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// buntime are the keys of Buntime's manifest.yaml that Pinwheel keeps.
type buntime struct {
	Entrypoint  string            `json:"entrypoint"`
	Env         map[string]string `json:"env"`
	IdleTimeout seconds           `json:"idleTimeout"`
	MaxBodySize workers.Bytes     `json:"maxBodySize"`
	MaxRequests int               `json:"maxRequests"`
	Timeout     seconds           `json:"timeout"`
	TTL         seconds           `json:"ttl"`
}

// Defaults of Buntime for a worker that lives longer than a request.
const (
	buntimeIdle     = workers.Millis(time.Minute)
	buntimeRequests = 1000
)

// fromBuntime translates. Without a ttl a worker of Buntime ends with each request: that is mode oneshot. With one it
// keeps its state: that is mode persistent.
func (m *Manifest) fromBuntime(root *node) error {
	m.d.other = func(full string, k member) (bool, error) {
		switch full {
		case "autoInstall", "lowMemory":
			if k.value.kind != boolean {
				return false, m.d.fail(k.value.at, "%s is %s: it is true or false", full, k.value)
			}
			m.Ignored = append(m.Ignored, full)
			return true, nil
		case "publicRoutes":
			return false, m.d.fail(k.at, "key %q: every path is public here, unless \"http\" in a manifest of Pinwheel has \"auth\"; \"public\" beside it names the public ones", full)
		}
		return false, nil
	}
	var b buntime
	if err := m.d.value("", root, reflect.ValueOf(&b).Elem()); err != nil {
		return err
	}
	m.Main, m.Vars = b.Entrypoint, b.Env
	for key, value := range map[string]seconds{"timeout": b.Timeout, "idleTimeout": b.IdleTimeout} {
		if value.given && value.Millis == 0 {
			return m.d.fail(m.d.at[key], "%s is 0: it is above 0; without it the default holds", key)
		}
	}
	m.Limits.Wall = b.Timeout.Millis
	if b.MaxBodySize > 0 {
		m.HTTP = &workers.HTTP{MaxBody: b.MaxBodySize}
	}
	m.Mode = workers.Oneshot
	if b.TTL.Millis > 0 {
		m.persistent(b)
	} else {
		for _, key := range []string{"idleTimeout", "maxRequests"} {
			if root.member(key) != nil { // there is nothing that could be idle
				m.Ignored = append(m.Ignored, key)
			}
		}
	}
	for native, foreign := range map[string]string{
		"vars": "env", "limits.wallMs": "timeout", "lifetime.ttlMs": "ttl", "lifetime.idleMs": "idleTimeout",
		"lifetime.requests": "maxRequests",
		"main":              "entrypoint", "mode": "ttl", "http.maxBody": "maxBodySize",
	} {
		m.stands(native, foreign)
	}
	for name := range b.Env {
		m.stands("vars."+name, "env."+name)
	}
	return nil
}

func (m *Manifest) persistent(b buntime) {
	m.Mode = workers.Persistent
	m.Lifetime = workers.Lifetime{Idle: buntimeIdle, TTL: b.TTL.Millis, Requests: buntimeRequests}
	if b.IdleTimeout.given {
		m.Lifetime.Idle = b.IdleTimeout.Millis
	}
	if b.MaxRequests > 0 {
		m.Lifetime.Requests = b.MaxRequests
	}
}

// stands says that errors about a field of the specification are errors about a foreign key.
func (m *Manifest) stands(native, foreign string) {
	if at, ok := m.d.at[foreign]; ok {
		m.d.at[native] = at
	}
}
