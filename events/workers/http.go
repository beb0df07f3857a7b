package workers

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// HTTP says how a worker answers HTTP requests.
type HTTP struct {
	// Enabled false: requests are answered as if there were no such worker. nil = true.
	Enabled *bool `json:"enabled,omitempty"`
	// Routes are addresses of the worker beside WORKER--OWNER.DOMAIN. ParseRoute reads one.
	Routes []string `json:"routes,omitempty"`
	// Base is what the paths of the worker begin with, for example "/shop". The worker does not see it. "" = nothing.
	Base     string   `json:"base,omitempty"`
	Delivery Delivery `json:"delivery,omitempty"`
	MaxBody  Bytes    `json:"maxBody,omitempty"` // of a request; 0 = what the process allows
	CORS     *CORS    `json:"cors,omitempty"`    // nil = the handler answers other origins itself
	// Auth is the secret that a client must send; "" = none. It is one of Spec.Secrets.
	Auth   string      `json:"auth,omitempty"`
	Public PublicPaths `json:"public,omitempty"` // need no Auth
	Log    *RequestLog `json:"log,omitempty"`    // nil = no lines about requests
	// Previews: the version may be shown at a link that somebody has signed, whether it is active or not.
	Previews bool `json:"previews,omitempty"`
}

// On reports whether the worker answers HTTP requests. h may be nil.
func (h *HTTP) On() bool { return h == nil || h.Enabled == nil || *h.Enabled }

// Bytes is a size. A manifest may have it with a unit: "10mb".
type Bytes int64

// MaxHTTPBody is the largest MaxBody.
const MaxHTTPBody Bytes = 16 << 30

// Bounds of lists in HTTP.
const (
	maxRoutes      = 100
	maxPublicPaths = 200
	maxOrigins     = 100
)

// Delivery is what becomes of an HTTP request.
type Delivery string

// The deliveries. The zero Delivery means DeliverDirect.
const (
	// DeliverDirect: the event is stored nowhere. The response is the handler's.
	DeliverDirect Delivery = "direct"
	// DeliverStored: the event is stored before it runs, and runs again after a crash. The response is the handler's.
	DeliverStored Delivery = "stored"
	// DeliverAccepted: the response is 202 as soon as the event is stored. The handler's is not sent.
	DeliverAccepted Delivery = "accepted"
)

// IsDirect reports whether d is DeliverDirect, or says nothing.
func (d Delivery) IsDirect() bool { return d == "" || d == DeliverDirect }

// Deliveries are all deliveries, the default first.
var Deliveries = [...]Delivery{DeliverDirect, DeliverStored, DeliverAccepted}

// AnyMethod is the key of PublicPaths for paths that are public with every method.
const AnyMethod = "*"

// PublicPaths are paths by the method of a request.
type PublicPaths map[string][]string

// CORS says which pages of other origins may send requests and read responses.
type CORS struct {
	// Origins are "https://HOST", "https://HOST:PORT", or alone: "reflective" (each origin is answered with itself), "*"
	// or "none".
	Origins     []string `json:"origins" manifest:"short"`
	Methods     []string `json:"methods,omitempty"`     // none = each that a page asks for
	Headers     []string `json:"headers,omitempty"`     // of requests; none = each that a page asks for
	Expose      []string `json:"expose,omitempty"`      // headers of responses that a page may read, beside the simple ones
	Credentials bool     `json:"credentials,omitempty"` // pages may send cookies and passwords
	MaxAge      Millis   `json:"maxAgeMs,omitempty"`    // for which a browser need not ask again; 0 = 2 hours
}

// Origins of CORS that are none.
const (
	OriginReflective = "reflective"
	OriginAny        = "*"
	OriginNone       = "none"
)

// validateHTTP checks HTTP, which refers to secrets.
func (s Spec) validateHTTP() error {
	h := s.HTTP
	if h == nil {
		return nil
	}
	if h.Delivery != "" && !slices.Contains(Deliveries[:], h.Delivery) {
		return fmt.Errorf("http.delivery is %q: it is one of %s, %s, %s", h.Delivery, DeliverDirect, DeliverStored, DeliverAccepted)
	}
	if h.MaxBody < 0 || h.MaxBody > MaxHTTPBody {
		return fmt.Errorf("http.maxBody is %d: it is 1 to %d bytes", h.MaxBody, MaxHTTPBody)
	}
	if why := wrongBase(h.Base); why != "" {
		return fmt.Errorf("http.base is %q: %s", h.Base, why)
	}
	if h.Auth != "" && !slices.Contains(s.Secrets, h.Auth) {
		return fmt.Errorf("http.auth is %q: it is one of the secrets of the worker, which \"secrets\" names", h.Auth)
	}
	if h.Auth == "" && len(h.Public) > 0 {
		return fmt.Errorf("http.public is for a worker with http.auth: without it every path is public")
	}
	for _, check := range []func() error{h.validateRoutes, h.Public.validate, h.CORS.validate, h.Log.validate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func wrongBase(base string) string {
	switch {
	case base == "":
	case !strings.HasPrefix(base, "/") || strings.HasSuffix(base, "/"):
		return "it begins with / and does not end with one, for example /shop"
	case len(base) > maxPath:
		return fmt.Sprintf("it has at most %d bytes", maxPath)
	case strings.Contains(base, "//") || DotSegment(base):
		return "it has no segment that is empty, . or .."
	case !pathChars.MatchString(base):
		return "it has letters, digits, /-._~!$&'()+,;=@: and %XX"
	}
	return ""
}

func (h *HTTP) validateRoutes() error {
	if len(h.Routes) > maxRoutes {
		return fmt.Errorf("http.routes has %d: at most %d are allowed", len(h.Routes), maxRoutes)
	}
	for i, text := range h.Routes {
		if _, err := ParseRoute(text); err != nil {
			return fmt.Errorf("http.routes[%d] is %q: %w", i, text, err)
		}
		if slices.Index(h.Routes, text) < i {
			return fmt.Errorf("http.routes[%d] is %q, which stands there twice", i, text)
		}
	}
	return nil
}

var methodName = regexp.MustCompile(`^[A-Z]{1,20}$`)

func (p PublicPaths) validate() error {
	n := 0
	for _, method := range slices.Sorted(maps.Keys(p)) {
		if method != AnyMethod && !methodName.MatchString(method) {
			return fmt.Errorf("http.public.%s is no method: it is A-Z, for example GET, or %s for all", method, AnyMethod)
		}
		for i, path := range p[method] {
			if n++; n > maxPublicPaths {
				return fmt.Errorf("http.public has more than %d paths", maxPublicPaths)
			}
			if why := wrongPublicPath(path); why != "" {
				return fmt.Errorf("http.public.%s[%d] is %q: %s", method, i, path, why)
			}
		}
	}
	return nil
}

const maxPath = 1024 // bytes

func wrongPublicPath(path string) string {
	literal := strings.TrimSuffix(path, "*")
	switch {
	case !strings.HasPrefix(path, "/"):
		return "it begins with /"
	case len(path) > maxPath:
		return fmt.Sprintf("it has at most %d bytes", maxPath)
	case literal != path && !strings.HasSuffix(literal, "/"):
		return "* stands at the end, after a /"
	case DotSegment(literal):
		return "it has no segment . or .."
	}
	for segment := range strings.SplitSeq(literal[1:], "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok && events.CheckEnvName(name) != nil {
			return fmt.Sprintf("segment %s is a colon and a name of A-Z a-z 0-9 _", segment)
		}
		if !pathChars.MatchString(segment) {
			return "a segment has letters, digits, -._~!$&'()+,;=@: and %XX"
		}
	}
	return ""
}

// pathChars are what a path has (RFC 3986 pchar) without *, which has a meaning of its own here.
var pathChars = regexp.MustCompile(`^(?:[A-Za-z0-9\-._~!$&'()+,;=@:/]|%[0-9A-Fa-f]{2})*$`)

// Match reports whether the path of a request with that method is public. One that can be no file is not.
func (p PublicPaths) Match(method string, path Path) bool {
	return slices.ContainsFunc(p[method], path.matches) || slices.ContainsFunc(p[AnyMethod], path.matches)
}

func (c *CORS) validate() error {
	if c == nil {
		return nil
	}
	if len(c.Origins) == 0 || len(c.Origins) > maxOrigins {
		return fmt.Errorf("http.cors.origins has %d: it has 1 to %d", len(c.Origins), maxOrigins)
	}
	for i, o := range c.Origins {
		switch o {
		case OriginReflective, OriginAny, OriginNone:
			if len(c.Origins) > 1 {
				return fmt.Errorf("http.cors.origins[%d] is %q, which stands alone", i, o)
			}
			continue
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" ||
			o != strings.ToLower(u.Scheme+"://"+u.Host) {
			return fmt.Errorf("http.cors.origins[%d] is %q: an origin is https://HOST in lower case without a path, or it is %s, %s or %s", i, o, OriginReflective, OriginAny, OriginNone)
		}
	}
	if c.Credentials && c.Origins[0] == OriginAny {
		return fmt.Errorf("http.cors.credentials is for named origins or %q: browsers refuse it with %q", OriginReflective, OriginAny)
	}
	for _, l := range []struct {
		name  string
		names []string
	}{{"methods", c.Methods}, {"headers", c.Headers}, {"expose", c.Expose}} {
		for i, name := range l.names {
			if !tokenName.MatchString(name) || len(l.names) > maxOrigins {
				return fmt.Errorf("http.cors.%s[%d] is %.80q: it is a name of letters, digits and hyphens, and there are at most %d", l.name, i, name, maxOrigins)
			}
		}
	}
	if c.MaxAge < 0 || c.MaxAge > Millis(24*time.Hour) {
		return fmt.Errorf("http.cors.maxAgeMs is %d: it is at most 24 hours", c.MaxAge.ms())
	}
	return nil
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// Allows reports whether pages of the origin may read responses. c may be nil.
func (c *CORS) Allows(origin string) bool {
	switch {
	case c == nil || c.Origins[0] == OriginNone:
		return false
	case c.Origins[0] == OriginAny, c.Origins[0] == OriginReflective:
		return true
	}
	return slices.Contains(c.Origins, origin)
}

// Route is an address of a worker.
type Route struct {
	// Host is in lower case and has no port. "*.SUFFIX" is every host below SUFFIX, "*" every host.
	Host string
	// Path begins with /. It is escaped, as in a request.
	Path string
	// Below: every path that begins with Path. In text, a * follows it.
	Below bool
}

var hostLabels = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

const maxHost = 253 // bytes

// CheckHost checks the name of a host: labels in lower case, without port. It may begin with "*.".
func CheckHost(host string) error {
	if len(host) > maxHost || !hostLabels.MatchString(strings.TrimPrefix(host, "*.")) {
		return fmt.Errorf("host %.80q: it is labels of a-z 0-9 - with dots between, at most %d bytes, without port; *. may stand before them", host, maxHost)
	}
	return nil
}

// ParseRoute reads "HOST/PATH", for example "shop.acme.example/api/*". The error says what is allowed.
func ParseRoute(text string) (Route, error) {
	host, path, ok := strings.Cut(text, "/")
	if !ok {
		return Route{}, errors.New("a route is HOST/PATH; HOST/* is everything of a host")
	}
	if err := CheckHost(host); err != nil {
		return Route{}, err
	}
	r := Route{Host: host, Path: "/" + path}
	r.Path, r.Below = strings.CutSuffix(r.Path, "*")
	switch {
	case len(r.Path) > maxPath:
		return Route{}, fmt.Errorf("its path has at most %d bytes", maxPath)
	case !pathChars.MatchString(r.Path):
		return Route{}, errors.New("its path has letters, digits, /-._~!$&'()+,;=@: and %XX, and * only at the end")
	case DotSegment(r.Path):
		return Route{}, errors.New("its path has no segment \".\" or \"..\"")
	}
	return r, nil
}

// Canonical is the route with its path escaped in the one way of Path.Canonical. Equal addresses have equal routes.
func (r Route) Canonical() Route {
	r.Path = PathKey(r.Path)
	return r
}

// String is the text that ParseRoute reads.
func (r Route) String() string {
	if r.Below {
		return r.Host + r.Path + "*"
	}
	return r.Host + r.Path
}

// GrantsHost reports whether the owner may have a host, which may begin with "*.": one of Hosts is the same, or covers
// it.
func (p Policy) GrantsHost(host string) bool {
	for _, grant := range p.Hosts {
		suffix, wild := strings.CutPrefix(grant, "*")
		if grant == host || wild && (suffix == "" || strings.HasSuffix(host, suffix)) {
			return true
		}
	}
	return false
}

// MayRoute returns an error that names the first route of h whose host the owner may not have. h may be nil.
func (p Policy) MayRoute(h *HTTP) error {
	if h == nil {
		return nil
	}
	for i, text := range h.Routes {
		r, err := ParseRoute(text)
		if err == nil && !p.GrantsHost(r.Host) {
			err = fmt.Errorf("the owner may not have host %s: an operator grants it with 'pinwheel owners set OWNER --hosts %s'", r.Host, r.Host)
		}
		if err != nil {
			return fmt.Errorf("http.routes[%d] is %s: %w", i, text, err)
		}
	}
	return nil
}

// RequestLog says which lines about HTTP requests the output of a worker has.
type RequestLog struct {
	Level RequestLevel `json:"level,omitempty" manifest:"short"`
	// RequestBody and ResponseBody: the lines have the beginnings of the bodies.
	RequestBody  bool `json:"requestBody,omitempty"`
	ResponseBody bool `json:"responseBody,omitempty"`
}

// RequestLevel says which requests have a line, and what is in it.
type RequestLevel string

// The levels. The zero RequestLevel means RequestsStandard.
const (
	RequestsNone     RequestLevel = "none"     // no lines
	RequestsMinimal  RequestLevel = "minimal"  // requests whose response has a status from 500
	RequestsStandard RequestLevel = "standard" // all requests
	RequestsFull     RequestLevel = "full"     // all requests, with query and headers
)

// RequestLevels are all levels.
var RequestLevels = [...]RequestLevel{RequestsNone, RequestsMinimal, RequestsStandard, RequestsFull}

// Wants reports whether a request whose response has this status has a line. l may be nil.
func (l *RequestLog) Wants(status int) bool {
	return l != nil && l.Level != RequestsNone && (l.Level != RequestsMinimal || status >= 500)
}

func (l *RequestLog) validate() error {
	if l != nil && l.Level != "" && !slices.Contains(RequestLevels[:], l.Level) {
		return fmt.Errorf("http.log.level is %q: it is one of %s, %s, %s, %s", l.Level, RequestsNone, RequestsMinimal, RequestsStandard,
			RequestsFull)
	}
	return nil
}
