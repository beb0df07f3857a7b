package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func queryEscape(s string) string { return url.QueryEscape(s) }

// routes are all pages, actions and streams.
func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", c.views.serveAsset)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { c.open(w, r, showLogin) })
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { c.open(w, r, login) })
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) { c.answer(w, r, viewer, logout) })

	c.get(mux, "/{$}", showFlow)
	c.get(mux, "/live/flow", liveFlow)
	c.get(mux, "/live/tail", liveTail)
	c.get(mux, "/live/job/{job}", liveJob)
	c.get(mux, "/live/workers/{owner}/{worker}", liveWorker)

	c.get(mux, "/workers", listWorkers)
	c.look(mux, "/workers/{owner}/{worker}", showWorker)
	c.asked(mux, "/workers/{owner}/{worker}/promote", askPromote, promote)
	c.asked(mux, "/workers/{owner}/{worker}/rollback", askRollback, rollback)
	c.asked(mux, "/workers/{owner}/{worker}/reset", askReset, reset)
	c.asked(mux, "/workers/{owner}/{worker}/send", showSend, sendEvent)
	c.look(mux, "/workers/{owner}/{worker}/code", showCode)
	c.get(mux, "/sent/{id}", showSent)
	c.get(mux, "/live/sent/{id}", liveSent)

	c.look(mux, "/dead", listLetters)
	c.get(mux, "/dead/counts", countLetters)
	c.look(mux, "/dead/{id}", showLetter)
	c.look(mux, "/dead/{id}/edit", showEdit)
	c.post(mux, "/dead/{id}/edit", edit)
	c.look(mux, "/dead/replay", showReplay)
	c.post(mux, "/dead/replay", replay)
	c.look(mux, "/dead/purge", showPurge)
	c.post(mux, "/dead/purge", purge)
	c.look(mux, "/jobs/{job}", showJob)
	c.post(mux, "/jobs/{job}/cancel", cancelJob)
	c.look(mux, "/event", showEvent)
	c.look(mux, "/runs", listRuns)
	c.look(mux, "/usage", showUsage)

	c.routesOfQueue(mux)
	c.look(mux, "/schedules", listSchedules)
	c.post(mux, "/schedules/pause", pauseSchedule)
	c.post(mux, "/schedules/resume", resumeSchedule)
	c.asked(mux, "/schedules/cancel", askCancelWaiting, cancelWaiting)

	c.get(mux, "/owners", listOwners)
	c.look(mux, "/owners/{owner}", showOwner)
	c.post(mux, "/owners/{owner}", setPolicy)
	c.asked(mux, "/owners/{owner}/remove", askRemovePolicy, removePolicy)

	c.look(mux, "/isolates", showIsolates)
	c.look(mux, "/cells", showCells)
	c.get(mux, "/doctor", showDoctor)
	c.look(mux, "/audit", listAudit)
	c.get(mux, "/", func(c *call) (*page, error) {
		c.show(http.StatusNotFound, &page{view: "error", title: "Not Found", data: failure{http.StatusNotFound, "Not Found",
			"there is no such page"}})
		return nil, nil
	})
	return mux
}

// liveWorker streams the figures of a worker.
func liveWorker(c *call) (*page, error) {
	w := watchedWorker{c.fleet(), c.path("owner"), c.path("worker")}
	return nil, c.live.run(c.w, c.http, func(s *stream) error {
		return w.follow(s.ctx, func(f figures) error {
			p, err := c.views.parts(c.session, workerPage{Figures: f}, "worker-figures")
			return errors.Join(err, s.send("parts", p))
		})
	})
}

// open answers requests that need no session.
func (c *Console) open(w http.ResponseWriter, r *http.Request, h handler) {
	one := &call{Console: c, session: c.sessions.of(r, time.Now()), inputs: inputs{r}, w: w, ctx: r.Context()}
	if p, err := h(one); err != nil {
		one.fail(err)
	} else if p != nil {
		one.show(http.StatusOK, p)
	}
}

// loginForm is the data of the login page.
type loginForm struct {
	Next, Who, Wrong string
	View, Operate    bool // which tokens there are
}

func (s *sessions) loginForm(next string) loginForm {
	return loginForm{Next: next, View: s.tokens[viewer] != "", Operate: s.tokens[operator] != ""}
}

// within is a path of this console, or its first page: a link could have a browser go elsewhere after the login.
func within(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

func showLogin(c *call) (*page, error) {
	if c.Role != nobody {
		http.Redirect(c.w, c.http, within(c.arg("next")), http.StatusSeeOther)
		return nil, nil
	}
	return &page{view: "login", title: "Log in", data: c.sessions.loginForm(within(c.arg("next")))}, nil
}

// login begins a session. The form of nobody has no session to name; the browser says which site sent it.
func login(c *call) (*page, error) {
	c.http.Body = http.MaxBytesReader(c.w, c.http.Body, maxHeader)
	if err := c.http.ParseForm(); err != nil {
		return nil, err
	}
	who, next := cleanWho(strings.TrimSpace(c.form("who"))), within(c.form("next"))
	r := c.sessions.roleOf(c.form("token"))
	if r == nobody {
		c.cfg.Log.Warn().Str("from", c.http.RemoteAddr).Msg("a wrong token at the console")
		f := c.sessions.loginForm(next)
		f.Who, f.Wrong = who, "This token is wrong."
		c.show(http.StatusUnauthorized, &page{view: "login", title: "Log in", data: f})
		return nil, nil
	}
	setCookie(c.w, c.http, c.sessions.begin(r, who, time.Now()))
	http.Redirect(c.w, c.http, next, http.StatusSeeOther)
	return nil, nil
}

func logout(c *call) (*page, error) {
	setCookie(c.w, c.http, cookie(sessionCookie, "", -time.Second))
	http.Redirect(c.w, c.http, "/login", http.StatusSeeOther)
	return nil, nil
}
