package manifest

import (
	pathpkg "path"
	"reflect"
	"strings"
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
	AutoInstall bool              `json:"autoInstall"`

	PublicRoutes workers.PublicPaths `json:"publicRoutes"`

	// Buntime has these elsewhere: the base in the name of the application, and it drops vars that look like secrets.
	Base    string   `json:"base"`
	Secrets []string `json:"secrets"`
	Plain   []string `json:"plain"`
}

// foreignPages is what a manifest of Buntime says of pages and packages.
type foreignPages struct {
	AutoInstall bool                // a deploy installs the packages
	Page        string              // index.html, as the manifest names it: Assets has its directory
	FindsPage   bool                // without a source, index.html is the Page
	Public      workers.PublicPaths // paths without a token, if the source wants one
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
		if full != "lowMemory" {
			return false, nil
		}
		if k.value.kind != boolean {
			return false, m.d.fail(k.value.at, "%s is %s: it is true or false", full, k.value)
		}
		m.Ignored = append(m.Ignored, full)
		return true, nil
	}
	var b buntime
	if err := m.d.value("", root, reflect.ValueOf(&b).Elem()); err != nil {
		return err
	}
	if err := m.entrypoint(b.Entrypoint); err != nil {
		return err
	}
	m.Vars, m.Secrets, m.Plain, m.Public = b.Env, b.Secrets, b.Plain, b.PublicRoutes
	if m.AutoInstall = b.AutoInstall; m.AutoInstall {
		m.Notes = append(m.Notes,
			"autoInstall: 'pinwheel deploy' installs the packages, if there is a lock file and its package manager; "+
				"'pinwheel dev' installs none")
	}
	for key, value := range map[string]seconds{"timeout": b.Timeout, "idleTimeout": b.IdleTimeout} {
		if value.given && value.Millis == 0 {
			return m.d.fail(m.d.at[key], "%s is 0: it is above 0; without it the default holds", key)
		}
	}
	m.Limits.Wall = b.Timeout.Millis
	if b.MaxBodySize > 0 || b.Base != "" {
		m.HTTP = &workers.HTTP{MaxBody: b.MaxBodySize, Base: b.Base}
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
		"http.base": "base", "http.public": "publicRoutes", "assets": "entrypoint",
	} {
		m.stands(native, foreign)
	}
	for name := range b.Env {
		m.stands("vars."+name, "env."+name)
	}
	return nil
}

// entrypoint is the source, or a page: then the files of its directory answer, and the page where there is none.
func (m *Manifest) entrypoint(path string) error {
	switch {
	case path == "":
		m.FindsPage = true
	case !strings.EqualFold(pathpkg.Ext(path), ".html"):
		m.Main = path
	case pathpkg.Base(path) != "index.html":
		return m.Fault("entrypoint", "entrypoint is %.200q: a page is index.html, which answers where there is no file", path)
	default:
		m.ServePage(path)
	}
	return nil
}

// ServePage makes the worker a site: the files beside the page answer, and the page where there is none.
func (m *Manifest) ServePage(path string) {
	m.Page = path
	m.Assets = &workers.Assets{Directory: pathpkg.Dir(path), NotFound: workers.NotFoundSPA}
}

// WithPublic adds the public paths to a specification that wants a token. Without one every path is public, which the
// note says.
func (m *Manifest) WithPublic(spec workers.Spec) workers.Spec {
	switch {
	case len(m.Public) == 0:
	case spec.HTTP == nil || spec.HTTP.Auth == "":
		m.Notes = append(m.Notes, "publicRoutes makes no difference here: without a token (// @token NAME in the source) every path is public")
	default:
		h := *spec.HTTP
		h.Public, spec.HTTP = m.Public, &h
	}
	return spec
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
