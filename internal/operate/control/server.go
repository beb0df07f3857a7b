package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/mod/semver"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

const (
	// requestTimeout limits the time of a request. An operation that takes longer is a job.
	requestTimeout = 20 * time.Second
	// maxControl is how many requests a process handles at once.
	maxControl = 16
)

// Process is the process of a Server. It has the facts that only this process knows, and the operations that affect it
// alone.
type Process interface {
	// Stats returns its figures, for JSON.
	Stats() any
	// Flow returns what runs here, and what has happened here since the start. Who answers is filled in later.
	Flow() Flow
	// WorkersFlow returns what the workers of an owner do here, or the one of that name. Who answers is filled in later.
	WorkersFlow(owner, worker string) WorkersFlow
	// Minutes returns what happened here in each of the last minutes, the oldest first: in all, or of an owner.
	Minutes(owner string) []Minute
	// Held returns events of an owner, or of one worker, that the process holds, at most MaxHeldEvents, and how many.
	Held(owner, worker string) (list []HeldEvent, all int)
	// Sources returns what sources of an owner, or with "" of all, do here (see sources.Sources.List).
	Sources(owner, after, through string, limit int) (list []sources.Status, more bool)
	// Unstored returns why JetStream does not acknowledge events now, or nil. Owners may read it.
	Unstored() error
	// Installed returns what runs here of a worker, or the zero Installation.
	Installed(owner, name string) workers.Installation
	// Installations returns what runs here of all workers, in any order. They are shared: nothing may change them.
	Installations() []*workers.Installation
	// Policies returns the policies of the owners that have one. They are shared, but the map is the caller's.
	Policies() map[string]*workers.Policy
	// Policy returns the policy of an owner. It is shared, so nothing may change it.
	Policy(owner string) *workers.Policy
	// Outcomes returns how the runs of a worker's split have ended here, and the number of its rollout.
	Outcomes(owner, name string) (rollout int, outcomes workers.Outcomes)
	// Members returns this process, all processes that it knows, including itself, and the IDs of the last ones that
	// left.
	Members() (self Member, all []Member, left []string)
	// Tail begins, renews or ends a tail of an owner.
	Tail(owner string, r tail.Request) error
	// OpenChecker opens a checker that passes what a module writes to log.
	OpenChecker(log func(events.LogLine)) Checker
	// AdmitLetter says why a letter of this size must not be imported for an owner, or returns nil. It counts as a call.
	AdmitLetter(owner string, size int) *events.Failure
	// Reset has all processes of the fleet end the contexts of a worker. done are those that have begun to, missing are
	// other ones that this process knows.
	Reset(ctx context.Context, owner, worker string) (done, missing []Member, err error)
	// Preview signs a host that shows w until a time, and returns it with a URL of it at this process. active is the
	// active version of the worker; nil = none. The error says why w cannot be shown.
	Preview(w, active *workers.Worker, until time.Time) (host, url string, err error)
	// Drain makes the process drain and end.
	Drain()
}

// Config configures a Server. All fields are required unless they say otherwise.
type Config struct {
	Prefix        string // first part of the subjects
	Node          string // name of this process
	Build         string // build of this process
	Token         string // token for guarded endpoints; may be empty
	ByPermissions bool   // if Token is empty, NATS alone controls access
	ReplyPrefixes []string

	AllowPrivateAddresses []string // may be empty
	Compilers             workers.Compilers
	Cell                  workers.Cell
	DrainTimeout          time.Duration

	Workers  *deploy.Store
	Policies *deploy.Policies
	Secrets  *deploy.Secrets
	Audit    *audit.Log // nil: changes are not recorded
	// Identities open secrets. nil: this process has no key.
	Identities *secrets.Identities
	// Bindings have what workers have stored.
	Bindings *bindings.Bindings
	// Sources are the connections that have sources. nil: only that of the fleet.
	Sources sources.Conns
	Process Process
	// Queue takes events out of the queue.
	Queue   *cancels.Fleet
	Log     zerolog.Logger
	Metrics prometheus.Registerer // may be nil
}

// Server answers requests on PREFIX.control.* and $SRV for one process (docs/reference/control.md).
type Server struct {
	Operations
	handlers handlers
	cfg      Config
	service  micro.Service // nil in a command
	here     *Here         // nil in a process

	life   *life
	room   chan struct{} // one slot for each request in progress
	gate   *gate         // of owners; nil in a command
	bodies *bodies       // of owners
}

// life is the time from Open to Close, with what runs in it.
type life struct {
	ctx     context.Context //nolint:containedctx // of requests and jobs
	end     context.CancelFunc
	running sync.WaitGroup
}

// newServer returns a Server without its gate, service and handlers.
func newServer(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, cfg Config, here *Here) *Server {
	subjects := events.Subjects(cfg.Prefix)
	s := &Server{
		Operations: Operations{nc: nc, js: js, subjects: subjects, node: cfg.Node, workers: cfg.Workers,
			policies: cfg.Policies, dead: deadletter.NewStore(js, subjects), schedules: schedule.NewStore(js, subjects)},
		cfg: cfg, here: here, life: &life{}, room: make(chan struct{}, maxControl),
		bodies: &bodies{nc: nc, subjects: subjects, inline: here != nil, uploads: newUploads(ofBodies), log: cfg.Log},
	}
	s.life.ctx, s.life.end = context.WithCancel(ctx)
	return s
}

// Open answers requests until ctx is done or Close is called.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Server, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s := newServer(ctx, nc, js, cfg, nil)
	s.gate = newGate(func(r ownerRequest) { handleOwned(s, r) }, cfg.Metrics)
	if s.service, err = s.openService(); err != nil {
		s.life.end()
		return nil, err
	}
	s.handlers = s.newHandlers(s.service.Info().ID, boundStores{cfg.Bindings})
	for _, e := range endpoints() {
		err = errors.Join(err, s.add(e, e.name, cfg.Prefix+".control."+e.name, s.take))
		if e.tenant {
			err = errors.Join(err, s.add(e, "owner."+e.name, ownerSubject(cfg.Prefix, "*", e.name), s.takeOwned))
		}
	}
	// Any process takes a request about a job, and forwards it to the process that has the job.
	own := Endpoint[jobRequest, Job]{
		Name:    "job",
		Doc:     "Returns the state of a job of this process, or cancels it.",
		Each:    true,
		Guarded: true,
		handle:  by(jobsOf, (*jobs).own),
	}
	if err = errors.Join(err, s.add(own.row(), own.Name, s.handlers.jobs.subject(), s.take)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// add answers requests on subject. take gets each. name is that of the endpoint on $SRV.
func (s *Server) add(e row, name, subject string, take func(row, micro.Request)) error {
	opts := []micro.EndpointOpt{
		micro.WithEndpointSubject(subject),
		micro.WithEndpointMetadata(map[string]string{"guarded": strconv.FormatBool(e.guarded), "description": e.doc}),
	}
	if e.each {
		opts = append(opts, micro.WithEndpointQueueGroupDisabled())
	}
	return s.service.AddEndpoint(strings.ReplaceAll(name, ".", "-"),
		micro.HandlerFunc(func(r micro.Request) { take(e, r) }), opts...)
}

// Close ends jobs after their current letter, and waits for requests.
func (s *Server) Close() {
	if s.here == nil {
		_ = s.service.Stop() // it fails when the connection is closed, which has the same effect
	}
	s.life.end()
	if s.here == nil {
		s.gate.queue.Close()
	}
	s.life.running.Wait()
}

// take answers one request in its own goroutine.
func (s *Server) take(e row, r micro.Request) {
	if !s.mayAnswer(r.Reply()) {
		s.cfg.Log.Warn().Str("endpoint", e.name).Str("reply", r.Reply()).Msg("control request is not answered: its reply subject is no inbox")
		return
	}
	select {
	case s.room <- struct{}{}:
	default:
		_ = r.Error("503", "this process has too many control requests under way: try again", nil)
		return
	}
	s.life.running.Go(func() {
		defer func() { <-s.room }()
		s.serve(e, r, "", func(ctx context.Context) (any, error) { return s.answer(ctx, e, r) })
	})
}

// serve answers a request by do. owner is the owner whose API it came to, or "".
func (s *Server) serve(e row, r micro.Request, owner string, do func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(s.life.ctx, requestTimeout)
	defer cancel()
	answer, err := do(ctx)
	if err != nil && s.life.ctx.Err() != nil {
		err = &Error{Code: http.StatusServiceUnavailable, Text: processEnding}
	}
	log := s.cfg.Log.With().Str("endpoint", e.name).Logger()
	level := zerolog.InfoLevel
	if owner != "" { // it must not fill the log
		log, level = log.With().Str("owner", owner).Logger(), zerolog.DebugLevel
	}
	switch {
	case errors.Is(err, errNotMeant):
	case err != nil:
		code, text := codeOf(err), oneLine(err)
		log.WithLevel(level).Int("code", code).Msg(text)
		s.respond(r, refusal(code, text), moduleFault(err))
	default:
		if e.guarded {
			log.WithLevel(level).Msg("control request")
		}
		if e.audit {
			s.recordRequest(ctx, change{e.name, owner, r.Data(), r.Headers().Get(HeaderClaims), answer})
		}
		data, err := encodeJSON(answer)
		if err != nil {
			s.respond(r, refusal(http.StatusInternalServerError, "the answer cannot be sent: "+err.Error()), nil)
			return
		}
		if most := s.nc.MaxPayload(); int64(len(data)) > most {
			s.respond(r, refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("the answer has %d bytes: a message has at most %d",
				len(data), most)), nil)
			return
		}
		s.respond(r, nil, data)
	}
}

// refusal returns the headers of an answer that is an error.
func refusal(code int, text string) nats.Header {
	return nats.Header{micro.ErrorHeader: {strings.NewReplacer("\n", " ", "\r", " ").Replace(text)},
		micro.ErrorCodeHeader: {strconv.Itoa(code)}}
}

// respond answers r. Only the goroutine of r may call the methods of micro.Request.
func (s *Server) respond(r micro.Request, h nats.Header, data []byte) {
	if err := s.nc.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: h, Data: data}); err != nil {
		s.cfg.Log.Warn().Err(err).Str("subject", r.Subject()).Msg("control request could not be answered")
	}
}

func (s *Server) answer(ctx context.Context, e row, r micro.Request) (any, error) {
	if e.guarded {
		if err := s.authorize(e.name, r.Headers().Get("Authorization")); err != nil {
			return nil, err
		}
	}
	return e.handle(ctx, s, "", r.Data())
}

// mayAnswer reports whether subject may receive the answer to a control request. Answers are published with the fleet's
// permissions. So only inboxes are allowed, including those of owners.
func (s *Server) mayAnswer(subject string) bool {
	if s.subjects.Owned(subject) || strings.HasPrefix(subject, "$") {
		return false
	}
	return strings.HasPrefix(subject, "_INBOX") || slices.ContainsFunc(s.cfg.ReplyPrefixes, func(p string) bool {
		p, _, _ = strings.Cut(p, "{")
		return p != "" && strings.HasPrefix(subject, p)
	})
}

// serviceName is the name of the processes on $SRV.
const serviceName = "pinwheel"

// openService answers $SRV.PING, INFO and STATS for this process until the service is stopped or the connection is
// closed. In STATS, the data of the endpoint pool are the figures of the process.
func (s *Server) openService() (micro.Service, error) {
	return micro.AddService(s.nc, micro.Config{
		Name: serviceName, Version: semanticVersion(), Description: "One process of a Pinwheel fleet",
		Metadata: map[string]string{"node": s.cfg.Node, "prefix": s.cfg.Prefix, "version": s.cfg.Build},
		StatsHandler: func(e *micro.Endpoint) any {
			if e.Name != "pool" {
				return nil
			}
			return s.cfg.Process.Stats()
		},
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) { s.cfg.Log.Warn().Err(err).Msg("NATS service") },
	})
}

// semanticVersion is the version of this build without the leading v. It is 0.0.0-devel for a build without a version.
func semanticVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && semver.IsValid(info.Main.Version) {
		return strings.TrimPrefix(semver.Canonical(info.Main.Version), "v")
	}
	return "0.0.0-devel"
}
