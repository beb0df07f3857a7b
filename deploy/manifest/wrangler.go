package manifest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// wrangler are the keys of wrangler's configuration that Pinwheel keeps.
type wrangler struct {
	Name     string            `json:"name"`
	Main     string            `json:"main"`
	Vars     map[string]string `json:"vars"`
	Triggers struct {
		Crons []string `json:"crons"`
	} `json:"triggers"`
	Queues struct {
		Producers []struct {
			Binding string `json:"binding"`
			Queue   string `json:"queue"`
		} `json:"producers"`
	} `json:"queues"`
	Limits struct {
		CPU         int `json:"cpu_ms"`
		Subrequests int `json:"subrequests"`
	} `json:"limits"`
	Secrets struct {
		Required []string `json:"required"`
	} `json:"secrets"`
	Route  wranglerRoute   `json:"route"`
	Routes []wranglerRoute `json:"routes"`
	Assets struct {
		Directory string              `json:"directory"`
		Binding   string              `json:"binding"`
		HTML      events.HTMLHandling `json:"html_handling"`
		NotFound  events.NotFound     `json:"not_found_handling"`
		First     pathsOrAll          `json:"run_worker_first"`
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

// fromWrangler translates. A queue's name is the name of the worker that takes its messages.
func (m *Manifest) fromWrangler(root *node) error {
	m.d.other = m.wranglerKey
	var w wrangler
	m.d.json, m.d.scalars = map[string]string{}, true
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
	for i, p := range w.Queues.Producers {
		path := fmt.Sprintf("queues.producers[%d]", i)
		switch {
		case p.Binding == "" || p.Queue == "":
			return m.d.fail(m.d.at[path], "%s has a binding and a queue", path)
		case m.Queues[p.Binding] != "":
			return m.d.fail(m.d.at[path], "%s.binding is %q: another producer has that name", path, shorten(p.Binding))
		case m.Queues == nil:
			m.Queues = map[string]string{}
		}
		m.Queues[p.Binding] = p.Queue
		m.stands("queues."+p.Binding, path+".queue")
	}
	for i, cron := range w.Triggers.Crons {
		path := fmt.Sprintf("triggers.crons[%d]", i)
		if err := cloudflareCron(cron); err != nil {
			return m.d.fail(m.d.at[path], "%s is %s: %v", path, strconv.Quote(shorten(cron)), err)
		}
		m.stands(fmt.Sprintf("schedules[%d].cron", i), path)
		m.Schedules = append(m.Schedules, events.Schedule{Name: strconv.Itoa(i + 1), Cron: cron})
	}
	m.stands("schedules", "triggers.crons")
	if err := m.wranglerAssets(root, w); err != nil {
		return err
	}
	return m.wranglerRoutes(root, w)
}

func (m *Manifest) wranglerAssets(root *node, w wrangler) error {
	if root.member("assets") == nil {
		return nil
	}
	if w.Assets.Binding != "" {
		return m.d.fail(m.d.at["assets.binding"], "key \"assets.binding\": a handler cannot read the files yet; run_worker_first has the paths that it answers")
	}
	m.Assets = &events.Assets{Directory: w.Assets.Directory, NotFound: w.Assets.NotFound, HTML: w.Assets.HTML, WorkerFirst: w.Assets.First}
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
	m.HTTP = &events.HTTP{}
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
func millis(n int) events.Millis {
	if n < 0 || n > int(maxDuration.Milliseconds()) {
		return events.Millis(maxDuration)
	}
	return events.Millis(n) * 1_000_000
}

// cloudflareCron refuses expressions that mean something else here: Cloudflare counts the days of a week from 1, Sunday.
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
	if _, ok := wranglerIgnored[full]; ok {
		m.Ignored = append(m.Ignored, full)
		return true, nil
	}
	why, ok := wranglerRefused[elementIndex.ReplaceAllString(full, "[]")]
	switch {
	case !ok:
		return false, nil
	case k.value.empty():
		m.Ignored = append(m.Ignored, full)
		return true, nil
	}
	return false, m.d.fail(k.at, "key %q: %s", full, why)
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
