package cli

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// controlTimeout bounds what a request may take; what takes longer is a job.
	controlTimeout = 20 * time.Second
	// maxControl is how many requests a process works at at once.
	maxControl = 16
)

// control answers requests on <prefix>.control.* (docs/operations.md, "Control endpoints").
type control struct {
	f         *fleet
	js        jetstream.JetStream
	dead      *consumer.DeadLetters
	schedules *consumer.Schedules
	jobs      jobs
	service   micro.Service
	drain     func() // has this process drain and end

	life    context.Context //nolint:containedctx // of requests and jobs: from open to close
	end     context.CancelFunc
	running sync.WaitGroup
	room    chan struct{} // a place for each request under way
}

// endpoint is one kind of request.
type endpoint struct {
	name    string // subject after <prefix>.control.
	each    bool   // every process answers, or those that the request means; else any one
	guarded bool   // it changes something, or shows events: it takes the token
	handle  func(c *control, ctx context.Context, r request) (any, error)
}

// request is what a handler gets of one.
type request struct {
	data   []byte
	header micro.Headers
}

// endpoints are all of them.
func endpoints() []endpoint {
	return []endpoint{
		{"pool", true, false, (*control).pool},
		{"stats", false, false, (*control).stats},
		{"settings", false, false, (*control).settings},
		{"workers.list", false, false, (*control).workersList},
		{"workers.versions", false, false, (*control).workersVersions},
		{"workers.active", true, false, (*control).workersActive},
		{"owners.list", false, false, (*control).ownersList},
		{"owners.get", false, false, (*control).ownersGet},
		{"owners.set", false, true, (*control).ownersSet},
		{"owners.rm", false, true, (*control).ownersRemove},
		{"drain", true, true, (*control).drainProcess},
		{"schedules.list", false, false, (*control).schedulesList},
		{"schedules.next", false, false, (*control).schedulesNext},
		{"schedules.waiting", false, true, (*control).schedulesWaiting},
		{"schedules.cancel", false, true, (*control).schedulesCancel},
		{"schedules.pause", false, true, (*control).schedulesPause},
		{"schedules.resume", false, true, (*control).schedulesResume},
		{"dead.list", false, true, (*control).deadList},
		{"dead.show", false, true, (*control).deadShow},
		{"dead.edit", false, true, (*control).deadEdit},
		{"dead.replay", false, true, (*control).deadReplay},
		{"dead.replays", false, true, (*control).deadReplays},
		{"dead.purge", false, true, (*control).deadPurge},
		{"dead.job", false, true, (*control).deadJob},
		{"dead.cancel", false, true, (*control).deadCancel},
		{"dead.jobs", true, true, (*control).deadJobs},
	}
}

// openControl answers for this process on $SRV and <prefix>.control until it is closed. drain must make the process drain.
func (f *fleet) openControl(ctx context.Context, drain func()) (*control, error) {
	js, err := jetstream.New(f.nc)
	if err != nil {
		return nil, err
	}
	c := &control{f: f, js: js, drain: drain, room: make(chan struct{}, maxControl)}
	c.dead, c.schedules = consumer.NewDeadLetters(js, events.Subjects(f.cfg.Prefix)), consumer.NewSchedules(js, events.Subjects(f.cfg.Prefix))
	c.life, c.end = context.WithCancel(ctx)
	if c.service, err = f.openService(); err != nil {
		c.end()
		return nil, err
	}
	add := func(e endpoint, subject string) error {
		opts := []micro.EndpointOpt{
			micro.WithEndpointSubject(subject), micro.WithEndpointMetadata(map[string]string{"guarded": strconv.FormatBool(e.guarded)}),
		}
		if e.each {
			opts = append(opts, micro.WithEndpointQueueGroupDisabled())
		}
		return c.service.AddEndpoint(strings.ReplaceAll(e.name, ".", "-"), micro.HandlerFunc(func(r micro.Request) { c.take(e, r) }), opts...)
	}
	for _, e := range endpoints() {
		err = errors.Join(err, add(e, f.cfg.Prefix+".control."+e.name))
	}
	// What any process is asked of a job is passed on to the one that has it.
	own := endpoint{"job", true, true, (*control).ownJob}
	if err = errors.Join(err, add(own, c.jobSubject(c.service.Info().ID))); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *control) jobSubject(id string) string { return c.f.cfg.Prefix + ".control.job." + id }

// close ends jobs after the letter they are at, and waits for requests.
func (c *control) close() {
	_ = c.service.Stop() // fails when the connection is closed: as good
	c.end()
	c.running.Wait()
}

// take answers one request on a goroutine of its own.
func (c *control) take(e endpoint, r micro.Request) {
	if !c.f.mayAnswer(r.Reply()) {
		c.f.log.Warn().Str("endpoint", e.name).Str("reply", r.Reply()).Msg("control request is not answered: its reply subject is no inbox")
		return
	}
	select {
	case c.room <- struct{}{}:
	default:
		_ = r.Error("503", "this process has too many control requests under way: try again", nil)
		return
	}
	c.running.Go(func() {
		defer func() { <-c.room }()
		ctx, cancel := context.WithTimeout(c.life, controlTimeout)
		defer cancel()
		answer, err := c.answer(e, ctx, request{r.Data(), r.Headers()})
		if err != nil && c.life.Err() != nil {
			err = &controlError{http.StatusServiceUnavailable, processEnding}
		}
		switch {
		case errors.Is(err, errNotMeant):
		case err != nil:
			code, text := controlCode(err), err.Error()
			c.f.log.Info().Str("endpoint", e.name).Int("code", code).Msg(text)
			c.respond(r, controlRefusal(code, text), nil)
		default:
			if e.guarded {
				c.f.log.Info().Str("endpoint", e.name).Msg("control request")
			}
			data, err := json.Marshal(answer)
			if err != nil {
				c.respond(r, controlRefusal(http.StatusInternalServerError, "the answer cannot be sent: "+err.Error()), nil)
				return
			}
			c.respond(r, nil, data)
		}
	})
}

// controlRefusal is the headers of an answer that is an error.
func controlRefusal(code int, text string) nats.Header {
	return nats.Header{micro.ErrorHeader: {strings.NewReplacer("\n", " ", "\r", " ").Replace(text)}, micro.ErrorCodeHeader: {strconv.Itoa(code)}}
}

// respond answers r. micro's own ways to answer are for its goroutine only.
func (c *control) respond(r micro.Request, h nats.Header, data []byte) {
	if err := c.f.nc.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: h, Data: data}); err != nil {
		c.f.log.Warn().Err(err).Str("subject", r.Subject()).Msg("control request could not be answered")
	}
}

func (c *control) answer(e endpoint, ctx context.Context, r request) (any, error) {
	if e.guarded {
		if err := c.f.authorize(e.name, r.header.Get("Authorization")); err != nil {
			return nil, err
		}
	}
	return e.handle(c, ctx, r)
}

// mayAnswer reports whether a control request may be answered on subject: answers go out with the fleet's rights, so to inboxes only, be
// it those of owners.
func (f *fleet) mayAnswer(subject string) bool {
	if events.Subjects(f.cfg.Prefix).Owned(subject) || strings.HasPrefix(subject, "$") {
		return false
	}
	return strings.HasPrefix(subject, "_INBOX") || slices.ContainsFunc(f.cfg.ReplyPrefixes, func(p string) bool {
		p, _, _ = strings.Cut(p, "{")
		return p != "" && strings.HasPrefix(subject, p)
	})
}

// controlByPermissions is the value of PINWHEEL_CONTROL with which NATS alone decides who may ask.
const controlByPermissions = "permissions"

// authorize says whether a guarded endpoint may be used.
func (f *fleet) authorize(name, authorization string) error {
	switch {
	case f.cfg.ControlToken == "" && f.cfg.Control == controlByPermissions:
		return nil
	case f.cfg.ControlToken == "":
		return &controlError{http.StatusForbidden, fmt.Sprintf(
			"%s is off: this fleet has no PINWHEEL_CONTROL_TOKEN, nor PINWHEEL_CONTROL=%s; open are %s", name, controlByPermissions, openEndpoints())}
	case authorization == "":
		return &controlError{http.StatusUnauthorized, fmt.Sprintf("%s needs the header Authorization: Bearer TOKEN; open are %s", name, openEndpoints())}
	}
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	have, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(f.cfg.ControlToken))
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
		return &controlError{http.StatusForbidden, name + ": the header Authorization has not the fleet's token: it is Bearer, a space and PINWHEEL_CONTROL_TOKEN"}
	}
	return nil
}

func openEndpoints() string {
	var names []string
	for _, e := range endpoints() {
		if !e.guarded {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ", ")
}

// processEnding is the error of a process that drains.
const processEnding = "this process is ending: ask again, and another one answers"

// errNotMeant is the error of a request that another process answers.
var errNotMeant = errors.New("another process is meant")

// controlError is an error with the code of its answer.
type controlError struct {
	code int
	text string
}

func (e *controlError) Error() string { return e.text }

// refused is the error of a request that is wrong.
func refused(format string, args ...any) error {
	return &controlError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// controlCode is what an error means to who asked.
func controlCode(err error) int {
	var ce *controlError
	switch {
	case errors.As(err, &ce):
		return ce.code
	case errors.Is(err, consumer.ErrNoDeadLetter), errors.Is(err, deploy.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, consumer.ErrChanged), errors.Is(err, consumer.ErrTooManyReplays):
		return http.StatusConflict
	case errors.Is(err, nats.ErrMaxPayload):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
