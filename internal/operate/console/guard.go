package console

import (
	"net/http"
	"strings"
)

// guarded refuses requests that no page of the console sent, and sets what a browser may do with the pages.
func (c *Console) guarded(next http.Handler) http.Handler {
	same := http.NewCrossOriginProtection()
	same.SetDenyHandler(http.HandlerFunc(refuseSite))
	inside := same.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", strings.Join([]string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
			"form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
		}, "; "))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// with no-referrer forms have no Origin, and where there is no TLS nothing else tells their site
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !c.cfg.knows(r.Host):
			http.Error(w, "this console is not known by this name: see PINWHEEL_CONSOLE_HOSTS", http.StatusMisdirectedRequest)
		case crossSite(r):
			refuseSite(w, r)
		default:
			inside.ServeHTTP(w, r)
		}
	})
}

func refuseSite(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "a page of another site sent this request", http.StatusForbidden)
}

// crossSite reports whether another site has the browser send a request that is no visit of a page. Such a request may
// read nothing, but it could begin a stream.
func crossSite(r *http.Request) bool {
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	return (site == "cross-site" || site == "same-site") && mode != "navigate"
}
