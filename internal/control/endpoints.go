package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// endpoint is one kind of request.
type endpoint struct {
	name    string // in the log and of the service's endpoint
	base    string // subject after PREFIX.control. or PREFIX.owner.OWNER.
	audited bool   // it changes something, and that is recorded
	each    each
	guarded guard
	handle  func(ctx context.Context, s *Server, data []byte) (any, error)
	// door handles a request at the door of an owner; nil: it is not answered there.
	door func(ctx context.Context, s *Server, owner string, data []byte) (any, error)
}

// each says which processes answer: every one, or the ones that the request names. Otherwise any one answers.
type each bool

const (
	anyProcess  each = false
	eachProcess each = true
)

// guard says whether an endpoint requires the token, because it changes something or shows events.
type guard bool

const (
	open    guard = false
	guarded guard = true
)

// endpointOf returns an endpoint that decodes a request and calls do with it.
func endpointOf[Request, Answer any](name string, e each, g guard, do func(*Server, context.Context, Request) (Answer, error)) endpoint {
	return endpoint{name: name, base: name, each: e, guarded: g, handle: func(ctx context.Context, s *Server, data []byte) (any, error) {
		var r Request
		if err := decodeRequest(data, &r); err != nil {
			return nil, err
		}
		return do(s, ctx, r)
	}}
}

// endpoints returns all endpoints. Those of ownedOf are answered at the owner's door too.
func endpoints() []endpoint {
	return append([]endpoint{
		{name: "pool", base: "pool", each: eachProcess, guarded: open, handle: pool},
		endpointOf("flow", eachProcess, open, (*Server).flow),
		endpointOf("stats", anyProcess, open, (*Server).Stats),
		endpointOf("settings", anyProcess, open, (*Server).settings),
		ownedOf("storage", anyProcess, open, func(s *Server, _ context.Context, _ AskStorage) (Storage, error) { return storageOf(s.cfg.Process) }),
		ownedOf("workers.list", anyProcess, open, (*Server).Workers),
		ownedOf("workers.find", anyProcess, open, (*Server).findWorkers),
		ownedOf("workers.flow", eachProcess, open, func(s *Server, _ context.Context, r AskWorkersFlow) (WorkersFlow, error) { return r.of(s.cfg.Process) }),
		ownedOf("workers.versions", anyProcess, open, (*Server).WorkerVersions),
		ownedOf("workers.active", eachProcess, open, (*Server).activeVersion),
		ownedOf("versions.list", anyProcess, open, (*Server).WorkerVersions),
		ownedOf("versions.show", anyProcess, guarded, (*Server).showVersion),
		audited(ownedOf("versions.preview", anyProcess, guarded, (*Server).previewVersion)),
		audited(ownedOf("workers.rm", anyProcess, guarded, (*Server).removeWorker)),
		audited(ownedOf("workers.reset", anyProcess, guarded, (*Server).resetWorker)),
		ownedOf("files.missing", anyProcess, guarded, (*Server).missingFiles),
		ownedOf("files.store", anyProcess, guarded, (*Server).storeFiles),
		audited(ownedOf("versions.deploy", anyProcess, guarded, (*Server).deployVersion)),
		endpointOf("versions.outcomes", eachProcess, open, (*Server).outcomes),
		ownedOf("deployments.list", anyProcess, open, (*Server).Deployments),
		audited(ownedOf("deployments.promote", anyProcess, guarded, (*Server).Promote)),
		audited(ownedOf("deployments.rollback", anyProcess, guarded, (*Server).Rollback)),
		audited(ownedOf("deployments.alias", anyProcess, guarded, (*Server).SetAlias)),
		endpointOf("owners.list", anyProcess, open, (*Server).Owners),
		endpointOf("owners.find", anyProcess, open, (*Server).findOwners),
		endpointOf("owners.get", anyProcess, open, (*Server).OwnerPolicy),
		audited(endpointOf("owners.set", anyProcess, guarded, (*Server).SetOwnerPolicy)),
		audited(endpointOf("owners.rm", anyProcess, guarded, (*Server).RemoveOwnerPolicy)),
		ownedOf("secrets.keys", eachProcess, open, (*Server).secretKeys),
		ownedOf("secrets.list", anyProcess, open, (*Server).secretList),
		audited(ownedOf("secrets.set", anyProcess, guarded, (*Server).SetSecret)),
		audited(ownedOf("secrets.rm", anyProcess, guarded, (*Server).RemoveSecret)),
		audited(endpointOf("secrets.rotate", eachProcess, guarded, (*Server).rotateSecrets)),
		audited(endpointOf("drain", eachProcess, guarded, (*Server).drain)),
		ownedOf("tail", eachProcess, open, (*Server).tail),
		ownedOf("schedules.list", anyProcess, open, (*Server).runningSchedules),
		ownedOf("schedules.next", anyProcess, open, (*Server).NextTicks),
		ownedOf("schedules.waiting", anyProcess, guarded, (*Server).WaitingEvents),
		audited(ownedOf("schedules.cancel", anyProcess, guarded, (*Server).CancelWaiting)),
		audited(ownedOf("schedules.pause", anyProcess, guarded, (*Server).PauseSchedule)),
		audited(ownedOf("schedules.resume", anyProcess, guarded, (*Server).ResumeSchedule)),
	}, storedEndpoints()...)
}

// storedEndpoints returns those about what owners have stored: dead letters, keys and objects; and about what was done.
func storedEndpoints() []endpoint {
	return []endpoint{
		ownedOf("dead.list", anyProcess, guarded, (*Server).DeadLetters),
		ownedOf("dead.counts", anyProcess, guarded, (*Server).countLetters),
		ownedOf("dead.show", anyProcess, guarded, (*Server).DeadLetter),
		ownedOf("dead.body", anyProcess, guarded, (*Server).deadBody),
		audited(ownedOf("dead.import", anyProcess, guarded, (*Server).importLetters)),
		audited(ownedOf("dead.edit", anyProcess, guarded, (*Server).EditDeadLetter)),
		audited(ownedOf("dead.replay", anyProcess, guarded, (*Server).replay)),
		ownedOf("dead.replays", anyProcess, guarded, (*Server).Replays),
		audited(ownedOf("dead.purge", anyProcess, guarded, (*Server).purge)),
		ownedOf("dead.job", anyProcess, guarded, (*Server).job),
		ownedOf("dead.cancel", anyProcess, guarded, (*Server).cancelJob),
		ownedOf("kv.list", anyProcess, guarded, (*Server).listKeys),
		ownedOf("kv.get", anyProcess, guarded, (*Server).getValue),
		audited(ownedOf("kv.put", anyProcess, guarded, (*Server).putValue)),
		audited(ownedOf("kv.rm", anyProcess, guarded, (*Server).removeKey)),
		ownedOf("objects.list", anyProcess, guarded, (*Server).listObjects),
		ownedOf("objects.get", anyProcess, guarded, (*Server).getObject),
		audited(ownedOf("objects.put", anyProcess, guarded, (*Server).putObject)),
		audited(ownedOf("objects.rm", anyProcess, guarded, (*Server).removeObject)),
		ownedOf("audit.list", anyProcess, guarded, (*Server).listAudit),
		ownedOf("dead.jobs", eachProcess, guarded, (*Server).listJobs),
	}
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

// authorize checks whether the caller may use a guarded endpoint.
func (s *Server) authorize(name, authorization string) error {
	switch {
	case s.cfg.Token == "" && s.cfg.ByPermissions:
		return nil
	case s.cfg.Token == "":
		return &Error{Code: http.StatusForbidden, Text: fmt.Sprintf(
			"%s is off: this fleet has no PINWHEEL_CONTROL_TOKEN, nor PINWHEEL_CONTROL=permissions; open are %s", name, openEndpoints())}
	case authorization == "":
		return &Error{Code: http.StatusUnauthorized, Text: fmt.Sprintf("%s needs the header Authorization: Bearer TOKEN; open are %s", name, openEndpoints())}
	}
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	have, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
		return &Error{Code: http.StatusForbidden, Text: name + ": the header Authorization has not the fleet's token: it is Bearer, a space and PINWHEEL_CONTROL_TOKEN"}
	}
	return nil
}
