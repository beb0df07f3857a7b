package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// Endpoint is one kind of request to a fleet, with its answer. The table of endpoints.go has all of them. Ask sends a
// request; the Server of each process, and a command when no process answers, handles it.
type Endpoint[Q, A any] struct {
	Name string // subject after PREFIX.control. or PREFIX.owner.OWNER.
	Doc  string // what it does, in one sentence
	// Owner returns the field of a request that names the owner whom the request concerns, and Worker the one that names
	// a worker, as OWNER/WORKER or WORKER. The owner API fills them in from its subject. If both are nil, the owner API
	// does not answer the endpoint.
	Owner, Worker func(*Q) *string

	Each    bool // every process answers, or the ones that the request names. Otherwise any one answers
	Guarded bool // it changes something or shows events, so the fleet's user needs the token
	Process bool // only a process can handle it, as all that Each says
	Audit   bool // it changes something, and the server records that
	Retry   Retry

	handle func(*Server, context.Context, Q) (A, error)
}

// Retry says when Ask asks again, until its context is done.
type Retry uint8

// When Ask asks again.
const (
	Once         Retry = iota // never
	IfRefused                 // while no process has room for the request: none has begun to handle it
	IfUnanswered              // also if a process does not answer: only for requests that change nothing
)

// handlers are the parts of a Server that handle groups of endpoints. The Server itself handles the others.
type handlers struct {
	jobs    *jobs
	counts  *letterCounts
	data    *ownerData
	secrets *sealedSecrets
	files   *fileStore
	deploys *deploys
	sends   *sends
}

// The parts by which the table of endpoints names a method.
func jobsOf(h *handlers) *jobs             { return h.jobs }
func countsOf(h *handlers) *letterCounts   { return h.counts }
func dataOf(h *handlers) *ownerData        { return h.data }
func secretsOf(h *handlers) *sealedSecrets { return h.secrets }
func filesOf(h *handlers) *fileStore       { return h.files }
func deploysOf(h *handlers) *deploys       { return h.deploys }
func sendsOf(h *handlers) *sends           { return h.sends }

// newHandlers returns the handlers of a Server. id is that of the process on $SRV.
func (s *Server) newHandlers(id string, stores ownerStores) handlers {
	ops, cfg, inCommand := &s.Operations, s.cfg, s.here != nil
	return handlers{
		jobs: &jobs{ops: ops, process: cfg.Process, life: s.life, gate: s.gate, id: id,
			fleet: NewClient(s.nc, cfg.Prefix, cfg.Token), queue: cfg.Queue, log: cfg.Log},
		counts: &letterCounts{ops: ops, life: s.life, gate: s.gate},
		data:   &ownerData{ops: ops, stores: stores, bodies: s.bodies},
		secrets: &sealedSecrets{store: cfg.Secrets, workers: s.workers, identities: cfg.Identities, process: cfg.Process,
			unopened: inCommand},
		files: &fileStore{workers: s.workers, policies: s.policies, bodies: s.bodies, uploads: newUploads(ofFiles)},
		deploys: &deploys{workers: s.workers, policies: s.policies, secrets: cfg.Secrets, process: cfg.Process,
			bodies: s.bodies, uploads: newUploads(ofDeploys), log: cfg.Log},
		sends: newSends(s.nc, cfg),
	}
}

// by makes handle of an Endpoint from a method of one of these parts.
func by[G, Q, A any](part func(*handlers) G,
	do func(G, context.Context, Q) (A, error)) func(*Server, context.Context, Q) (A, error) {
	return func(s *Server, ctx context.Context, q Q) (A, error) { return do(part(&s.handlers), ctx, q) }
}

// row is an Endpoint without its types, as the server needs it.
type row struct {
	name, doc                    string
	each, guarded, audit, tenant bool
	// handle decodes and handles a request. owner is the owner whose API it came to, or "".
	handle func(ctx context.Context, s *Server, owner string, data []byte) (any, error)
}

// row returns the row of the table.
func (e Endpoint[Q, A]) row() row {
	return row{
		name: e.Name, doc: e.Doc, each: e.Each, guarded: e.Guarded, audit: e.Audit, tenant: e.Owner != nil || e.Worker != nil,
		handle: func(ctx context.Context, s *Server, owner string, data []byte) (any, error) {
			var q Q
			if err := decodeRequest(data, &q); err != nil {
				return nil, err
			}
			if owner != "" {
				if err := e.restrict(&q, owner); err != nil {
					return nil, err
				}
			}
			return e.handle(s, ctx, q)
		},
	}
}

// asker is who sends a request. It is part of requests whose handling depends on that. The server alone fills it in.
type asker struct {
	by string // the owner whose API the request came to; "": the fleet's user
}

func (a *asker) setAsker(owner string) { a.by = owner }

// restrict limits a request to an owner that the fleet has determined. The error has code 403 if the request names
// another one.
func (e Endpoint[Q, A]) restrict(q *Q, owner string) error {
	if of, ok := any(q).(interface{ setAsker(owner string) }); ok {
		of.setAsker(owner)
	}
	if e.Worker != nil {
		worker := e.Worker(q)
		o, _, both := strings.Cut(*worker, "/")
		switch {
		case both && o != owner:
			return foreign("worker", *worker, owner)
		case !both && *worker != "":
			*worker = owner + "/" + *worker
		}
	}
	if e.Owner != nil {
		named := e.Owner(q)
		if *named != "" && *named != owner {
			return foreign("owner", *named, owner)
		}
		*named = owner
	}
	return nil
}

// foreign is the error of a request that names another owner.
func foreign(field, named, owner string) error {
	return &Error{Code: http.StatusForbidden, Field: field, Text: fmt.Sprintf("%s %.80q is not of owner %s, whose API this is",
		field, named, owner)}
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

// What the errors of authorize say after the name of the endpoint.
const (
	controlIsOff = " is off: this fleet has no PINWHEEL_CONTROL_TOKEN, nor PINWHEEL_CONTROL=permissions; open are "
	//nolint:gosec // it is no token
	tokenIsWrong = ": the header Authorization has not the fleet's token: it is Bearer, a space and PINWHEEL_CONTROL_TOKEN"
)

// isUnauthorized reports whether an error is one of authorize.
func isUnauthorized(name string, err *Error) bool {
	return err.Code == http.StatusUnauthorized ||
		err.Code == http.StatusForbidden && (err.Text == name+tokenIsWrong || strings.HasPrefix(err.Text, name+controlIsOff))
}

// authorize checks whether the caller may use a guarded endpoint.
func (s *Server) authorize(name, authorization string) error {
	switch {
	case s.cfg.Token == "" && s.cfg.ByPermissions:
		return nil
	case s.cfg.Token == "":
		return &Error{Code: http.StatusForbidden, Text: name + controlIsOff + openEndpoints()}
	case authorization == "":
		return &Error{Code: http.StatusUnauthorized, Text: fmt.Sprintf("%s needs the header Authorization: Bearer TOKEN; open are %s", name,
			openEndpoints())}
	}
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	have, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
		return &Error{Code: http.StatusForbidden, Text: name + tokenIsWrong}
	}
	return nil
}
