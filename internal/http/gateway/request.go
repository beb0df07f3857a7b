package gateway

import (
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Headers that the gateway sets, for the worker and for the client (docs/reference/http.md).
const (
	headerEventID         = "Event-Id"
	headerVersionKey      = "Version-Key"
	headerForwardedFor    = "X-Forwarded-For"
	headerForwardedHost   = "X-Forwarded-Host"
	headerForwardedProto  = "X-Forwarded-Proto"
	headerForwardedPrefix = "X-Forwarded-Prefix"
	headerClient          = "X-Real-Ip"
	headerConnectingIP    = "Cf-Connecting-Ip" // the same: what code for Cloudflare reads
)

// hopByHop are headers between two hops (RFC 9110 §7.6.1). Neither workers nor clients get those of the other side.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true,
	"Te":                  true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// checkRequest returns why a request cannot become an event, whatever its worker is; nil = it can.
func checkRequest(r *http.Request) *refusal {
	switch strings.ToUpper(r.Method) {
	case "CONNECT", "TRACE", "TRACK":
		return &refusal{http.StatusMethodNotAllowed, "method " + r.Method + " is not for workers"}
	case "GET", "HEAD":
		if r.ContentLength != 0 {
			return &refusal{http.StatusBadRequest, "a " + r.Method + " request has no body"}
		}
	}
	if r.RequestURI == "*" {
		return &refusal{http.StatusBadRequest, "* is not for workers"}
	}
	n := 0
	for name, values := range r.Header {
		n += len(values)
		for _, v := range values {
			if len(name)+len(v) > maxHeader {
				return &refusal{http.StatusRequestHeaderFieldsTooLarge, "header " + name[:min(len(name), 100)] + " is too long"}
			}
		}
	}
	if n > maxHeaders {
		return &refusal{http.StatusRequestHeaderFieldsTooLarge, "there are too many headers"}
	}
	if key := r.Header.Get(headerVersionKey); len(key) > events.MaxEventID {
		return &refusal{http.StatusBadRequest, "header " + headerVersionKey + " is too long"}
	}
	return nil
}

// eventOf makes the event of a request, without its URL and body.
func (g *Gateway) eventOf(r *http.Request, t target) *lifecycle.Delivery {
	c, now := g.clientOf(r), time.Now()
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, Owner: t.owner, Worker: t.worker,
		Version: t.version, VersionKey: r.Header.Get(headerVersionKey), ID: g.ids.Next(), Stored: now,
		Deadline: now.Add(g.cfg.Wait), Request: events.Request{Method: r.Method}},
		Runs: events.Runs{Attempt: 1}}
	named := hopsNamed(r.Header)
	list := make([]string, 0, 2*len(r.Header)+14)
	for name, values := range r.Header {
		if hopByHop[name] || events.OfGateway(name) || named[name] {
			continue
		}
		for _, v := range values {
			if name == "Cookie" {
				if v = withoutFleetCookies(v); v == "" {
					continue
				}
			}
			list = append(list, name, v)
		}
	}
	list = append(list, "Host", r.Host, headerEventID, e.ID, headerForwardedFor, c.chain, headerForwardedHost, r.Host,
		headerForwardedProto, c.scheme, headerClient, c.address.String(), headerConnectingIP, c.address.String())
	e.HTTPHeaders = list
	return e
}

var notBelow = &refusal{http.StatusNotFound, "the paths of this worker begin with its http.base"}

// place says which path the worker sees: that of the request below its prefix and the worker's base.
func (x *exchange) place(e *lifecycle.Delivery, t target) *refusal {
	prefix, path := t.prefix, t.path
	if base := x.service.Base; base != "" {
		below, ok := path.Below(base)
		if !ok {
			return notBelow
		}
		prefix, path = prefix+base, below
	}
	x.prefix, x.path = prefix, path
	e.URL = x.g.clientOf(x.r).scheme + "://" + x.r.Host + path.URL()
	if x.r.URL.RawQuery != "" || x.r.URL.ForceQuery {
		e.URL += "?" + x.r.URL.RawQuery
	}
	if e.Upgrade = upgrades(x.r) && x.service.Delivery.IsDirect(); e.Upgrade {
		e.HTTPHeaders = append(e.HTTPHeaders, "Upgrade", "websocket")
		x.upgrades = true
	}
	if prefix != "" {
		e.HTTPHeaders = append(e.HTTPHeaders, headerForwardedPrefix, prefix)
	}
	return nil
}

// hopsNamed are the headers that the Connection header names: they are for this hop only.
func hopsNamed(h http.Header) map[string]bool {
	var named map[string]bool
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if named == nil {
				named = map[string]bool{}
			}
			named[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	return named
}
