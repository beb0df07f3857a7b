package gateway

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Headers of the Fetch standard, § CORS protocol.
const (
	headerOrigin           = "Origin"
	headerVary             = "Vary"
	headerAllowOrigin      = "Access-Control-Allow-Origin"
	headerAllowMethods     = "Access-Control-Allow-Methods"
	headerAllowHeaders     = "Access-Control-Allow-Headers"
	headerAllowCredentials = "Access-Control-Allow-Credentials"
	headerExposeHeaders    = "Access-Control-Expose-Headers"
	headerMaxAge           = "Access-Control-Max-Age"
	headerRequestMethod    = "Access-Control-Request-Method"
	headerRequestHeaders   = "Access-Control-Request-Headers"
)

// corsAge is for how long a browser keeps the answer to a preflight, unless a manifest says otherwise.
const corsAge = 2 * time.Hour

// crossOrigin answers pages of other origins for one request. The zero value leaves that to the handler.
type crossOrigin struct {
	cors   *workers.CORS // nil = none
	origin string        // of the page that asks; "" = none does
}

func crossOriginOf(c *workers.CORS, r *http.Request) crossOrigin {
	if c == nil || c.Origins[0] == workers.OriginNone {
		return crossOrigin{}
	}
	return crossOrigin{c, r.Header.Get(headerOrigin)}
}

// mark sets the headers that let the page read a response.
func (c crossOrigin) mark(h http.Header) {
	if c.cors == nil {
		return
	}
	if c.cors.Origins[0] == workers.OriginAny {
		h[headerAllowOrigin] = []string{"*"}
	} else {
		h[headerVary] = []string{headerOrigin}
		if c.origin == "" || !c.cors.Allows(c.origin) {
			return
		}
		h[headerAllowOrigin] = []string{c.origin}
	}
	if c.cors.Credentials {
		h[headerAllowCredentials] = []string{"true"}
	}
	h[headerExposeHeaders] = []string{strings.Join(append([]string{headerEventID}, c.cors.Expose...), ", ")}
}

// owns reports whether a header of a response is set by mark, and not by the handler.
func (c crossOrigin) owns(name string) bool {
	return c.cors != nil && (name == headerAllowOrigin || name == headerAllowCredentials || name == headerExposeHeaders)
}

// preflight reports whether a browser asks what a page may request. It sends no password with that.
func (c crossOrigin) preflight(r *http.Request) bool {
	return c.cors != nil && c.origin != "" && r.Method == http.MethodOptions && r.Header.Get(headerRequestMethod) != ""
}

// answer says in h what a page may request. It is false when the page may request nothing.
func (c crossOrigin) answer(h http.Header, r *http.Request) bool {
	if !c.cors.Allows(c.origin) {
		return false
	}
	c.mark(h)
	if c.cors.Origins[0] != workers.OriginAny {
		h[headerVary] = []string{headerOrigin + ", " + headerRequestMethod + ", " + headerRequestHeaders}
	}
	delete(h, headerExposeHeaders) // is for other responses
	h[headerAllowMethods] = []string{cmp.Or(strings.Join(c.cors.Methods, ", "), r.Header.Get(headerRequestMethod))}
	if asked := r.Header.Get(headerRequestHeaders); asked != "" {
		h[headerAllowHeaders] = []string{cmp.Or(strings.Join(c.cors.Headers, ", "), asked)}
	}
	h[headerMaxAge] = []string{strconv.Itoa(int(cmp.Or(time.Duration(c.cors.MaxAge), corsAge).Seconds()))}
	return true
}
