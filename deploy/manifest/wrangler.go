package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// wrangler are the keys of wrangler's configuration that Pinwheel keeps.
type wrangler struct {
	Name     string            `json:"name"`
	Main     string            `json:"main"`
	Vars     map[string]string `json:"vars"`
	Triggers struct {
		Crons []string `json:"crons"`
	} `json:"triggers"`
	Queues wranglerQueues `json:"queues"`
	KV     []struct {
		Binding string `json:"binding"`
		ID      string `json:"id"`
	} `json:"kv_namespaces"`
	Objects []struct {
		Binding string `json:"binding"`
		Bucket  string `json:"bucket_name"`
	} `json:"r2_buckets"`
	Services []struct {
		Binding    string `json:"binding"`
		Service    string `json:"service"`
		Entrypoint string `json:"entrypoint"`
	} `json:"services"`
	Version struct {
		Binding string `json:"binding"`
	} `json:"version_metadata"`
	Limits struct {
		CPU         int `json:"cpu_ms"`
		Subrequests int `json:"subrequests"`
	} `json:"limits"`
	Secrets struct {
		Required []string `json:"required"`
	} `json:"secrets"`
	Route  wranglerRoute   `json:"route"`
	Routes []wranglerRoute `json:"routes"`
	Rules  []wranglerRule  `json:"rules"`
	Assets struct {
		Directory string               `json:"directory"`
		Binding   string               `json:"binding"`
		HTML      workers.HTMLHandling `json:"html_handling"`
		NotFound  workers.NotFound     `json:"not_found_handling"`
		First     pathsOrAll           `json:"run_worker_first"`
	} `json:"assets"`
}

// pathsOrAll is a list of paths, or true for all.
type pathsOrAll []string

// wranglerRoute is a pattern, or an object with one. Zones are Cloudflare's.
type wranglerRoute struct {
	Pattern      string `json:"pattern" manifest:"short"`
	ZoneID       string `json:"zone_id"`
	ZoneName     string `json:"zone_name"`
	CustomDomain bool   `json:"custom_domain"` // the pattern is a host, and everything of it is meant
}

// fromWrangler translates.
func (m *Manifest) fromWrangler(root *node) error {
	m.d.other = m.wranglerKey
	var w wrangler
	m.d.json, m.d.scalars = map[string]string{}, true
	if err := m.wranglerCompatibility(root); err != nil {
		return err
	}
	if err := m.d.value("", root, reflect.ValueOf(&w).Elem()); err != nil {
		return err
	}
	m.Name, m.Main, m.Vars, m.Secrets = w.Name, w.Main, w.Vars, w.Secrets.Required
	m.keepJSON()
	m.stands("secrets", "secrets.required")
	for i := range m.Secrets {
		m.stands(fmt.Sprintf("secrets[%d]", i), fmt.Sprintf("secrets.required[%d]", i))
	}
	m.Limits.CPU, m.Limits.Subrequests = millis(w.Limits.CPU), w.Limits.Subrequests
	m.stands("limits.cpuMs", "limits.cpu_ms")
	if err := m.wranglerQueues(w.Queues); err != nil {
		return err
	}
	if err := m.fromStores(&w); err != nil {
		return err
	}
	m.VersionBinding = w.Version.Binding
	m.stands("version", "version_metadata.binding")
	for i, cron := range w.Triggers.Crons {
		path := fmt.Sprintf("triggers.crons[%d]", i)
		if err := cloudflareCron(cron); err != nil {
			return m.d.fail(m.d.at[path], "%s is %s: %v", path, strconv.Quote(shorten(cron)), err)
		}
		m.stands(fmt.Sprintf("schedules[%d].cron", i), path)
		m.Schedules = append(m.Schedules, workers.Schedule{Name: strconv.Itoa(i + 1), Cron: cron})
	}
	m.stands("schedules", "triggers.crons")
	if err := m.wranglerAssets(root, w); err != nil {
		return err
	}
	if err := m.wranglerRules(w.Rules); err != nil {
		return err
	}
	return m.wranglerRoutes(root, w)
}

// fromStores takes namespaces of keys and values, buckets of objects, and services.
func (m *Manifest) fromStores(w *wrangler) error {
	for i, v := range w.Services {
		path := fmt.Sprintf("services[%d]", i)
		if v.Service == "" {
			return m.d.fail(m.d.at[path], "%s has no service", path)
		}
		target := events.ServiceTarget{Worker: v.Service, Entrypoint: v.Entrypoint}
		if v.Entrypoint == "default" { // Cloudflare has that name for it, too
			target.Entrypoint = ""
		}
		if err := m.store(&m.Services, "services", "service", path, ".service", v.Binding, target.String()); err != nil {
			return err
		}
	}
	for i, kv := range w.KV {
		if err := m.store(&m.KV, "kv", "namespace", fmt.Sprintf("kv_namespaces[%d]", i), ".id", kv.Binding,
			kv.ID); err != nil {
			return err
		}
	}
	for i, o := range w.Objects {
		if err := m.store(&m.Objects, "objects", "bucket", fmt.Sprintf("r2_buckets[%d]", i), ".bucket_name", o.Binding,
			o.Bucket); err != nil {
			return err
		}
	}
	return nil
}

// store binds name in env to a store or a service, whose name is that of the binding if it has no other. own is the key
// of this kind in Pinwheel's manifest. path and field are where wrangler's has the store and its name.
func (m *Manifest) store(all *map[string]string, own, noun, path, field, name, store string) error {
	switch {
	case name == "":
		return m.d.fail(m.d.at[path], "%s has no binding", path)
	case (*all)[name] != "":
		return m.d.fail(m.d.at[path], "%s.binding is %q: another %s has that name", path, shorten(name), noun)
	case *all == nil:
		*all = map[string]string{}
	}
	(*all)[name] = cmp.Or(store, name)
	m.stands(own+"."+name, path+field)
	return nil
}

func (m *Manifest) wranglerAssets(root *node, w wrangler) error {
	if root.member("assets") == nil {
		return nil
	}
	m.Assets = &workers.Assets{Directory: w.Assets.Directory, NotFound: w.Assets.NotFound, HTML: w.Assets.HTML,
		WorkerFirst: w.Assets.First, Binding: w.Assets.Binding}
	m.stands("assets.html", "assets.html_handling")
	m.stands("assets.notFound", "assets.not_found_handling")
	m.stands("assets.workerFirst", "assets.run_worker_first")
	for i := range w.Assets.First {
		m.stands(fmt.Sprintf("assets.workerFirst[%d]", i), fmt.Sprintf("assets.run_worker_first[%d]", i))
	}
	return nil
}

func (m *Manifest) wranglerRoutes(root *node, w wrangler) error {
	routes, path := w.Routes, "routes"
	if root.member("route") != nil {
		if len(routes) > 0 {
			return m.d.fail(m.d.at["route"], "route and routes: keep one of them")
		}
		routes, path = []wranglerRoute{w.Route}, "route"
	}
	if len(routes) == 0 {
		return nil
	}
	m.HTTP = &workers.HTTP{}
	m.stands("http.routes", path)
	for i, r := range routes {
		pattern := strings.TrimPrefix(strings.TrimPrefix(r.Pattern, "https://"), "http://")
		if r.CustomDomain {
			pattern += "/*"
		}
		m.HTTP.Routes = append(m.HTTP.Routes, pattern)
		place := path
		if root.member("route") == nil {
			place = fmt.Sprintf("routes[%d]", i)
		}
		m.stands(fmt.Sprintf("http.routes[%d]", i), place)
	}
	return nil
}

// millis is n milliseconds, or more than any limit allows.
func millis(n int) workers.Millis {
	if n < 0 || n > int(maxDuration.Milliseconds()) {
		return workers.Millis(maxDuration)
	}
	return workers.Millis(n) * 1_000_000
}

// cloudflareCron refuses expressions that mean something else here: Cloudflare counts the days of a week from 1,
// Sunday.
func cloudflareCron(cron string) error {
	fields := strings.Fields(cron)
	if len(fields) != 5 {
		return fmt.Errorf("it has 5 fields: minute, hour, day of month, month, day of week")
	}
	if strings.ContainsAny(fields[4], "0123456789") {
		return fmt.Errorf("days of the week count from 1 = Sunday at Cloudflare, and from 0 = Sunday here: " +
			"write names, like MON-FRI, which mean the same for both")
	}
	return nil
}

// wranglerKey is called for each key of wrangler that Pinwheel does not keep.
func (m *Manifest) wranglerKey(full string, k member) (bool, error) {
	key := elementIndex.ReplaceAllString(full, "[]")
	if m.compatible[full] {
		return true, nil
	}
	if _, ok := wranglerIgnored[key]; ok {
		m.Ignored = append(m.Ignored, full)
		return true, nil
	}
	why, ok := wranglerRefused[key]
	switch {
	case !ok:
		return false, nil
	case k.value.empty(), m.isDefault(key, k.value):
		m.Ignored = append(m.Ignored, full)
		return true, nil
	}
	return false, m.d.fail(k.at, "key %q: %s", full, why)
}

// isDefault reports whether a refused key says what is so anyway.
func (m *Manifest) isDefault(key string, value *node) bool {
	var b strings.Builder
	return wranglerDefaults[key] != "" && m.d.writeJSON(&b, key, value) == nil && b.String() == wranglerDefaults[key]
}

// empty reports whether n is null, false, or an object or list of nothing: whatever it is for, it asks for none of it.
func (n *node) empty() bool {
	switch n.kind {
	case null:
		return true
	case boolean:
		return n.scalar == "false"
	case list:
		return len(n.items) == 0
	case object:
		for _, m := range n.members {
			if !m.value.empty() {
				return false
			}
		}
		return true
	}
	return false
}
