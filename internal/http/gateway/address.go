package gateway

import (
	"net"
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/http/assetserver"
)

// target is the worker that a request is for.
type target struct {
	owner, worker string
	preview       string // what the host says of a version, which nobody has checked; "" = nothing
	version       string // that the host names, checked; "" = an active one
	prefix        string // of the path, which the worker does not see: /WORKER
	path          workers.Path
}

// refusal is why a request does not become an event.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

var notFound = &refusal{http.StatusNotFound, "no worker has this address"}

// targetOf finds the worker of a request. This is where the path of a request gets its one form.
func (g *Gateway) targetOf(r *http.Request) (target, *refusal) {
	host := hostName(r.Host)
	if host == "" {
		return target{}, &refusal{http.StatusBadRequest, "the Host of the request is no host"}
	}
	if !g.answersTo(host) {
		return target{}, notThisHost
	}
	path := assetserver.PathOf(r)
	if t, ok := byHost(host, g.cfg.Domain); ok {
		t.path = path
		return t, nil
	}
	if h, ok := g.Routes.find(host, path); ok {
		return target{owner: h.owner, worker: h.worker, path: path}, nil
	}
	if g.cfg.Paths == "" {
		return target{}, notFound
	}
	name := path.First()
	below, ok := path.Below("/" + name)
	if !ok || !events.ValidName(name) {
		return target{}, notFound
	}
	return target{owner: g.cfg.Paths, worker: name, prefix: "/" + name, path: below}, nil
}

// byHost reads WORKER--OWNER.DOMAIN and PREVIEW--WORKER--OWNER.DOMAIN. Hosts have no upper case, so workers and owners
// with upper case have no host. A name with two hyphens has none either: it could be read in two ways.
func byHost(host, domain string) (target, bool) {
	label, ok := strings.CutSuffix(host, "."+domain)
	if domain == "" || !ok || strings.Contains(label, "---") {
		return target{}, false
	}
	var t target
	switch names := strings.Split(label, "--"); len(names) {
	case 2:
		t.worker, t.owner = names[0], names[1]
	case 3:
		t.preview, t.worker, t.owner = names[0], names[1], names[2]
		if t.preview == "" {
			return target{}, false
		}
	default:
		return target{}, false
	}
	return t, events.ValidName(t.worker) && events.ValidName(t.owner)
}

// Bounds of the name of a host (RFC 1035 §2.3.4). Everything that looks for a host comes after them: the time that it
// takes grows with the labels times the bytes.
const (
	maxHost   = 253 // bytes
	maxLabels = 127
	hostEnd   = len(".:65535") // what may follow the name in a Host header
)

// hostName is a Host header in lower case, without port and final dot; "" = it is no host.
func hostName(host string) string {
	if len(host) > maxHost+hostEnd {
		return ""
	}
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return ""
		}
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if len(host) > maxHost || strings.Count(host, ".") >= maxLabels ||
		strings.ContainsFunc(host, func(c rune) bool { return !hostRune(c) }) {
		return ""
	}
	return host
}

// hostRune reports whether a host name or an address may have c.
func hostRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
		c == ']'
}
