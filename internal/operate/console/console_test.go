package console_test

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/operate/console"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const (
	operateToken = "operate-token-of-tests"
	viewToken    = "view-token-of-the-tests"
	patience     = time.Minute
)

func TestMain(m *testing.M) {
	cell.BeChild()
	modulecheck.BeChild()
	parallel.RaiseCPU()
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

// startFleet starts a fleet whose control endpoints need operateToken.
func startFleet(t *testing.T, change ...func(*config.Config)) *fleettest.Fleet {
	t.Helper()
	change = append(change, func(c *config.Config) { c.ControlToken = operateToken })
	return fleettest.Start(t, change...)
}

// startConsole serves the console of a fleet, and returns where.
func startConsole(t *testing.T, f *fleettest.Fleet, change ...func(*console.Config)) (base string) {
	t.Helper()
	return "http://" + serveConsole(t, f, change...).Addr()
}

func serveConsole(t *testing.T, f *fleettest.Fleet, change ...func(*console.Config)) *console.Console {
	t.Helper()
	cfg := console.Config{
		Addr: "127.0.0.1:0", ViewToken: viewToken, OperateToken: operateToken, Prefix: f.Config.Prefix,
		ControlToken: operateToken, Log: zerolog.Nop(),
		TraceURL: "https://traces.example/{trace}",
		Examine: func(ctx context.Context) []doctor.Line {
			return doctor.Examine(ctx, doctor.Config{NC: f.NC, Subjects: events.Subjects(f.Config.Prefix), Replicas: 1})
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := console.Open(cfg)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, f.NC) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-done)
	})
	return s
}

// person is a browser of somebody.
type person struct {
	t    *testing.T
	base string
	http *http.Client
}

// newPerson opens a browser. token "" = it does not log in.
func newPerson(t *testing.T, base, token string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	p := &person{t, base,
		&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if token != "" {
		code, _, to := p.send("/login", url.Values{"token": {token}, "who": {"Ada"}, "next": {"/dead"}})
		require.Equal(t, []any{http.StatusSeeOther, "/dead"}, []any{code, to})
	}
	return p
}

// get asks for a page.
func (p *person) get(path string) (code int, body string) {
	p.t.Helper()
	r, err := p.http.Get(p.base + path)
	require.NoError(p.t, err)
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	require.NoError(p.t, err)
	return r.StatusCode, string(text)
}

// page asks for a page that must be there.
func (p *person) page(path string) string {
	p.t.Helper()
	code, body := p.get(path)
	require.Equal(p.t, http.StatusOK, code, "%s: %s", path, body)
	return body
}

// send sends a form as it is.
func (p *person) send(path string, form url.Values) (code int, body, to string) {
	p.t.Helper()
	r, err := p.http.PostForm(p.base+path, form)
	require.NoError(p.t, err)
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	require.NoError(p.t, err)
	return r.StatusCode, string(text), r.Header.Get("Location")
}

var seenField = regexp.MustCompile(`name="seen" value="([^"]*)"`)

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// does sends a form of a page, and returns the page that comes after it.
func (p *person) does(from, path string, form url.Values) string {
	p.t.Helper()
	field := csrfField.FindStringSubmatch(p.page(from))
	require.NotNil(p.t, field, "%s has no form", from)
	form.Set("csrf", field[1])
	if seen := seenField.FindStringSubmatch(p.page(from)); seen != nil && !form.Has("seen") {
		form.Set("seen", html.UnescapeString(seen[1]))
	}
	code, body, to := p.send(path, form)
	require.Equal(p.t, http.StatusSeeOther, code, "%s: %s", path, body)
	return to
}

// deployed deploys a source as a worker of acme. Its manifest has what manifest adds.
func deployed(t *testing.T, f *fleettest.Fleet, name, source string, manifest ...string) {
	t.Helper()
	also := strings.Join(append([]string{""}, manifest...), ", ")
	path := filepath.Join(t.TempDir(), name+".js")
	require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json",
		[]byte(`{"retries": {"maxAttempts": 2, "initialMs": 1}`+also+`}`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]console.Config{
		"it is host:port":                {Addr: "8423"},
		"nobody can log in":              {Addr: "127.0.0.1:0"},
		"it is a loopback address":       {Addr: "0.0.0.0:0", Open: true},
		"who may only see would act":     {Addr: "127.0.0.1:0", ViewToken: viewToken, OperateToken: viewToken},
		"PINWHEEL_CONSOLE_ADDR is \"192": {Addr: "192.0.2.1:1", ViewToken: viewToken},
	} {
		_, err := console.Open(c)
		require.ErrorContains(t, err, want)
	}
}

func TestLogIn(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	base := startConsole(t, f)
	stranger := newPerson(t, base, "")
	code, _ := stranger.get("/dead?owner=acme")
	require.Equal(t, http.StatusSeeOther, code)
	for _, wrong := range []string{"", "wrong", operateToken + "x", viewToken[1:]} {
		code, body, _ := stranger.send("/login", url.Values{"token": {wrong}})
		require.Equal(t, http.StatusUnauthorized, code)
		require.Contains(t, body, "This token is wrong.")
	}
	for _, path := range []string{"/live/flow", "/live/tail?owner=acme"} {
		code, body := stranger.get(path)
		require.Equal(t, http.StatusSeeOther, code, body)
	}
	code, _, _ = stranger.send("/dead/purge", url.Values{"all": {"yes"}})
	require.Equal(t, http.StatusUnauthorized, code)

	viewer, operator := newPerson(t, base, viewToken), newPerson(t, base, operateToken)
	require.Contains(t, viewer.page("/"), "Ada, viewer")
	require.Contains(t, operator.page("/"), "Ada, operator")
	field := csrfField.FindStringSubmatch(viewer.page("/"))
	code, body, _ := viewer.send("/dead/purge", url.Values{"all": {"yes"}, "csrf": {field[1]}})
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, body, "a viewer may not do that")
	require.NotContains(t, viewer.page("/dead"), "Remove")

	// A cookie that was changed, or that is of another console, is none.
	at, err := url.Parse(base)
	require.NoError(t, err)
	cookies := operator.http.Jar.Cookies(at)
	require.Len(t, cookies, 1)
	value := cookies[0].Value
	for _, forged := range []string{value[:len(value)-2], "x" + value, strings.Replace(value, ".", "", 1), "." + value,
		"eyJyb2xlIjoyfQ." + strings.Split(value, ".")[1]} {
		operator.http.Jar.SetCookies(at, []*http.Cookie{{Name: cookies[0].Name, Value: forged, Path: "/"}})
		code, _ := operator.get("/")
		require.Equal(t, http.StatusSeeOther, code, forged)
	}
	require.Equal(t, "pinwheel_console_"+at.Port(), cookies[0].Name)
	otherBase := startConsole(t, f, func(c *console.Config) { c.OperateToken = "another-token-of-operators" })
	other := newPerson(t, otherBase, "")
	otherAt, err := url.Parse(otherBase)
	require.NoError(t, err)
	other.http.Jar.SetCookies(at, []*http.Cookie{{Name: "pinwheel_console_" + otherAt.Port(), Value: value, Path: "/"}})
	code, _ = other.get("/")
	require.Equal(t, http.StatusSeeOther, code)

	// Cookies of another port, and of another path, log nobody out.
	operator.http.Jar.SetCookies(at, []*http.Cookie{
		{Name: cookies[0].Name, Value: value, Path: "/"}, {Name: cookies[0].Name, Value: "x.y", Path: "/dead"},
		{Name: "pinwheel_console", Value: "x.y", Path: "/"}, {Name: "pinwheel_console_" + otherAt.Port(), Value: "x.y",
			Path: "/"},
	})
	operator.page("/dead")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/login",
		strings.NewReader(url.Values{"token": {operateToken}}.Encode()))
	require.NoError(t, err)
	r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Forwarded-Proto": {"https"}}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Regexp(t, `^__Host-pinwheel_console=.*; Path=/; .*Secure`, answer.Header.Get("Set-Cookie"),
		"no other host can set it")

	// Pages on other ports of this host can set cookies: a notice of theirs is not shown.
	viewer.http.Jar.SetCookies(at,
		[]*http.Cookie{{Name: "pinwheel_notice_" + at.Port(), Value: "QWxsIGlzIHdlbGw", Path: "/"}})
	require.NotContains(t, viewer.page("/"), "All is well")
	for _, k := range viewer.http.Jar.Cookies(at) {
		require.Regexp(t, "^"+gateway.FleetCookies, k.Name, "the gateway keeps it from workers")
	}

	viewer.does("/", "/logout", url.Values{})
	code, _ = viewer.get("/")
	require.Equal(t, http.StatusSeeOther, code)
}

// A link to the login cannot have the browser go to another site.
func TestLoginStaysHere(t *testing.T) {
	t.Parallel()
	base := startConsole(t, startFleet(t))
	for _, next := range []string{"//evil.example", `/\evil.example`, "https://evil.example/", "/\t/evil.example",
		"javascript:alert(1)"} {
		p := newPerson(t, base, "")
		code, _, to := p.send("/login", url.Values{"token": {viewToken}, "next": {next}})
		require.Equal(t, []any{http.StatusSeeOther, "/"}, []any{code, to}, next)
	}
}

// Pages of other sites can neither act nor read, by whatever name they reach the console.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	base := startConsole(t, f, func(c *console.Config) { c.Hosts = []string{"console.example"} })
	p := newPerson(t, base, operateToken)
	field := csrfField.FindStringSubmatch(p.page("/"))[1]
	at, err := url.Parse(base)
	require.NoError(t, err)
	session := p.http.Jar.Cookies(at)[0]
	ask := func(method, path, host string, header http.Header) (int, string) {
		body := strings.NewReader(url.Values{"csrf": {field}, "policy": {"{}"}}.Encode())
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, v := range header {
			r.Header[name] = v
		}
		if host != "" { // the cookie jar goes by it
			r.Host = host
			named := *session // a browser that came by this host has it under the name of this port
			named.Name = "pinwheel_console"
			if _, port, err := net.SplitHostPort(host); err == nil {
				named.Name += "_" + port
			}
			r.AddCookie(&named)
		}
		a, err := p.http.Do(r)
		require.NoError(t, err)
		defer func() { _ = a.Body.Close() }()
		text, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(text)
	}
	for host, want := range map[string]int{
		"evil.example": 421, "127.0.0.1.evil.example:8423": 421, "localhost.evil.example": 421, "": 200, "localhost:1": 200,
		"LOCALHOST": 200, "[::1]:8423": 200,
		"console.example": 200, "console.example.:443": 200, "192.0.2.7": 200, "xconsole.example": 421,
	} {
		code, body := ask(http.MethodGet, "/", host, nil)
		require.Equal(t, want, code, "%s: %s", host, body)
	}
	for _, h := range []http.Header{
		{"Origin": {"https://evil.example"}}, {"Origin": {"null"}},
		{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}},
		{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"cors"}},
	} {
		code, body := ask(http.MethodPost, "/owners/acme", "", h)
		require.Equal(t, 403, code, "%v: %s", h, body)
	}
	for _, path := range []string{"/live/flow", "/dead", "/assets/style.css"} {
		code, _ := ask(http.MethodGet, path, "", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}})
		require.Equal(t, 403, code, path)
	}
	code, _ := ask(http.MethodGet, "/", "", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}})
	require.Equal(t, 200, code, "a link on another page may lead here")
	code, _ = ask(http.MethodPost, "/owners/acme", "192.0.2.7:8423", http.Header{"Origin": {"http://192.0.2.7:8423"}})
	require.Equal(t, 409, code, "a form of this console: only the policy that it shows is not the one of now")
	good := field
	for _, field = range []string{"", "x", good[1:], strings.ToUpper(good)} {
		code, body := ask(http.MethodPost, "/owners/acme", "", nil)
		require.Equal(t, 403, code)
		require.Contains(t, body, "this form is not of this session")
	}
	require.NotContains(t, p.page("/owners"), "/owners/acme", "nothing was changed")
}

// An answer says what a browser may do with it.
func TestHeadersOfAnswers(t *testing.T) {
	t.Parallel()
	base := startConsole(t, startFleet(t))
	p := newPerson(t, base, viewToken)
	for _, path := range []string{"/", "/login", "/nothing", "/dead/x"} {
		r, err := p.http.Get(base + path)
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		require.NotContains(t, r.Header.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "DENY", r.Header.Get("X-Frame-Options"))
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
		require.Equal(t, "same-origin", r.Header.Get("Referrer-Policy"), "or forms have the Origin null")
	}
	r, err := http.PostForm(base+"/login", url.Values{"token": {viewToken}})
	require.NoError(t, err)
	_ = r.Body.Close()
	jar := newPerson(t, base, "")
	a, err := jar.http.PostForm(base+"/login", url.Values{"token": {viewToken}})
	require.NoError(t, err)
	_ = a.Body.Close()
	require.Contains(t, a.Header.Get("Set-Cookie"), "HttpOnly; SameSite=Strict")

	for _, match := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(p.page("/"), -1) {
		r, err := p.http.Get(base + match[1])
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Equal(t, http.StatusOK, r.StatusCode, match[1])
		require.Contains(t, r.Header.Get("Cache-Control"), "immutable")
	}
}
