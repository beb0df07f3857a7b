package console

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/net/netutil"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

const (
	maxConnections = 256
	maxHeader      = 32 << 10
	// maxForm is the largest form, in bytes. The body of a letter that is edited is in one.
	maxForm = 4 << 20
	// requestTime is how long a request may take, unless it gets parts of a page live.
	requestTime = 25 * time.Second
)

// Console is the HTTP server of the pages.
type Console struct {
	cfg      Config
	nc       *nats.Conn
	sessions *sessions
	views    *views
	watcher  *watcher
	checkup  *checkup
	live     *streams
	outbox   *outbox
	listener net.Listener
	server   *http.Server
}

// Open listens. The caller calls Serve, or Close.
func Open(cfg Config) (*Console, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	v, err := openViews(cfg.TraceURL)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("PINWHEEL_CONSOLE_ADDR is %q: %w", cfg.Addr, err)
	}
	c := &Console{cfg: cfg, sessions: newSessions(cfg), views: v, checkup: &checkup{examine: cfg.Examine},
		live: newStreams(), listener: netutil.LimitListener(l, maxConnections)}
	c.outbox = &outbox{life: c.live.life}
	c.server = &http.Server{
		Handler: c.guarded(c.routes()), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: requestTime + 5*time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
	}
	return c, nil
}

// Addr is where the console listens.
func (c *Console) Addr() string { return c.listener.Addr().String() }

// Serve answers requests about the fleet at the other end of nc until ctx is done. It is called once.
func (c *Console) Serve(ctx context.Context, nc *nats.Conn) error {
	c.nc = nc
	c.watcher = newWatcher(c.client(session{}))
	defer c.watcher.close()
	defer c.outbox.running.Wait()
	defer c.live.close()
	defer context.AfterFunc(ctx, func() {
		c.live.close()
		_ = c.server.Close()
	})()
	if err := c.server.Serve(c.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends a console that does not serve.
func (c *Console) Close() { _ = c.listener.Close() }

// client sends requests to the fleet in the name of a session.
func (c *Console) client(s session) *control.Client {
	client := control.NewClient(c.nc, c.cfg.Prefix, c.cfg.ControlToken)
	who := "console"
	if s.Who != "" {
		who += ": " + s.Who
	}
	client.Claim(who)
	return client
}

// call is one request, with what its handler needs.
type call struct {
	*Console
	session
	inputs
	w   http.ResponseWriter
	ctx context.Context //nolint:containedctx // of the request
}

func (c *call) fleet() *control.Client { return c.client(c.session) }

// page is what a handler answers: a template with its data.
type page struct {
	view  string // name of the template
	title string
	place string // entry of the navigation
	data  any
	wrong string // why the form or the filter on it was refused
}

// handler answers a request with a page, or with an error. With both, the page is that of the form or the filter that
// the error refuses, with what the person wrote. After an action it answers with another page's address (see done).
type handler func(*call) (*page, error)

// lookup answers a request that changes nothing with a page of what the fleet says.
type lookup func(ctx context.Context, fleet *control.Client, in inputs) (*page, error)

// look answers requests by a lookup.
func (c *Console) look(mux *http.ServeMux, path string, do lookup) {
	c.get(mux, path, func(c *call) (*page, error) { return do(c.ctx, c.fleet(), c.inputs) })
}

// get answers requests that change nothing.
func (c *Console) get(mux *http.ServeMux, path string, h handler) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { c.answer(w, r, viewer, h) })
}

// post answers forms of operators.
func (c *Console) post(mux *http.ServeMux, path string, h handler) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { c.answer(w, r, operator, h) })
}

// asked answers a form, and before it a page that asks whether to do it. Only operators are asked.
func (c *Console) asked(mux *http.ServeMux, path string, ask lookup, do handler) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		c.answer(w, r, operator, func(c *call) (*page, error) { return ask(c.ctx, c.fleet(), c.inputs) })
	})
	c.post(mux, path, do)
}

// answer runs a handler for a session that has at least this role.
func (c *Console) answer(w http.ResponseWriter, r *http.Request, least role, h handler) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	one := &call{Console: c, session: c.sessions.of(r, time.Now()), inputs: inputs{r}, w: w, ctx: ctx}
	if one.Role < least {
		one.refuse(least)
		return
	}
	if r.Method == http.MethodPost {
		if err := one.readForm(); err != nil {
			one.fail(err)
			return
		}
	}
	p, err := h(one)
	one.reply(p, err)
}

// reply answers with what a handler returned.
func (c *call) reply(p *page, err error) {
	switch {
	case err != nil && p != nil && isRefusal(err):
		f := failureOf(err)
		p.wrong = f.Text
		c.show(f.Code, p)
	case err != nil:
		c.fail(err)
	case p != nil:
		c.show(http.StatusOK, p)
	}
}

// isRefusal reports whether an error is about what the person wrote.
func isRefusal(err error) bool {
	var refused *control.Error
	return errors.As(err, &refused) && refused.Code >= 400 && refused.Code < 500 && refused.Code != http.StatusNotFound
}

// refuse answers a request whose session may not do that.
func (c *call) refuse(least role) {
	switch {
	case c.Role == nobody && c.http.Method == http.MethodGet && c.http.Header.Get("Accept") != "text/event-stream":
		http.Redirect(c.w, c.http, "/login?next="+queryEscape(c.http.URL.RequestURI()), http.StatusSeeOther)
	case c.Role == nobody:
		c.fail(&control.Error{Code: http.StatusUnauthorized, Text: "log in first"})
	default:
		c.fail(&control.Error{Code: http.StatusForbidden, Text: fmt.Sprintf("a %s may not do that: log in as an %s, with PINWHEEL_CONTROL_TOKEN", c.Role,
			least)})
	}
}

// readForm reads a form, and checks that a page of this session sent it.
func (c *call) readForm() error {
	c.http.Body = http.MaxBytesReader(c.w, c.http.Body, maxForm)
	if err := c.http.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &control.Error{Code: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the form has more than %d bytes",
				maxForm)}
		}
		return &control.Error{Code: http.StatusBadRequest, Text: "the form cannot be read"}
	}
	if subtle.ConstantTimeCompare([]byte(c.http.PostForm.Get("csrf")), []byte(c.CSRF)) != 1 {
		return &control.Error{Code: http.StatusForbidden, Text: "this form is not of this session: load its page again"}
	}
	return nil
}

// failure is the data of the page of an error.
type failure struct {
	Code   int
	Status string
	Text   string
}

// fail answers with an error.
func (c *call) fail(err error) {
	f := failureOf(err)
	c.show(f.Code, &page{view: "error", title: f.Status, data: f})
}

// failureOf is what a page says of an error.
func failureOf(err error) failure {
	f := failure{Code: http.StatusInternalServerError, Text: err.Error()}
	var refused *control.Error
	switch {
	case errors.As(err, &refused):
		f.Code, f.Text = refused.Code, refused.Text
	case errors.Is(err, nats.ErrNoResponders):
		f.Code, f.Text = http.StatusServiceUnavailable, "no process of the fleet answers: is one running?"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		f.Code, f.Text = http.StatusGatewayTimeout, "the fleet did not answer in time: "+err.Error()
	}
	if f.Code < 400 || f.Code > 599 {
		f.Code = http.StatusBadGateway
	}
	f.Status = http.StatusText(f.Code)
	return f
}

// done answers an action: the browser goes to a page, which shows the text once.
func (c *call) done(path, format string, args ...any) (*page, error) {
	setCookie(c.w, c.http, c.sessions.notice(c.Role, fmt.Sprintf(format, args...)))
	http.Redirect(c.w, c.http, path, http.StatusSeeOther)
	return nil, nil
}
