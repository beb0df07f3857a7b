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
	name    string // subject after PREFIX.control.
	each    each
	guarded guard
	handle  func(ctx context.Context, s *Server, data []byte) (any, error)
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
	return endpoint{name, e, g, func(ctx context.Context, s *Server, data []byte) (any, error) {
		var r Request
		if err := decodeRequest(data, &r); err != nil {
			return nil, err
		}
		return do(s, ctx, r)
	}}
}

// endpoints returns all endpoints.
func endpoints() []endpoint {
	return []endpoint{
		{"pool", eachProcess, open, pool},
		endpointOf("stats", anyProcess, open, (*Server).Stats),
		endpointOf("settings", anyProcess, open, (*Server).settings),
		endpointOf("workers.list", anyProcess, open, (*Server).Workers),
		endpointOf("workers.versions", anyProcess, open, (*Server).WorkerVersions),
		endpointOf("workers.active", eachProcess, open, (*Server).activeVersion),
		endpointOf("owners.list", anyProcess, open, (*Server).Owners),
		endpointOf("owners.get", anyProcess, open, (*Server).OwnerPolicy),
		endpointOf("owners.set", anyProcess, guarded, (*Server).SetOwnerPolicy),
		endpointOf("owners.rm", anyProcess, guarded, (*Server).RemoveOwnerPolicy),
		endpointOf("drain", eachProcess, guarded, (*Server).drain),
		endpointOf("schedules.list", anyProcess, open, (*Server).Schedules),
		endpointOf("schedules.next", anyProcess, open, (*Server).NextTicks),
		endpointOf("schedules.waiting", anyProcess, guarded, (*Server).WaitingEvents),
		endpointOf("schedules.cancel", anyProcess, guarded, (*Server).CancelWaiting),
		endpointOf("schedules.pause", anyProcess, guarded, (*Server).PauseSchedule),
		endpointOf("schedules.resume", anyProcess, guarded, (*Server).ResumeSchedule),
		endpointOf("dead.list", anyProcess, guarded, (*Server).DeadLetters),
		endpointOf("dead.show", anyProcess, guarded, (*Server).DeadLetter),
		endpointOf("dead.edit", anyProcess, guarded, (*Server).EditDeadLetter),
		endpointOf("dead.replay", anyProcess, guarded, (*Server).replay),
		endpointOf("dead.replays", anyProcess, guarded, (*Server).Replays),
		endpointOf("dead.purge", anyProcess, guarded, (*Server).purge),
		endpointOf("dead.job", anyProcess, guarded, (*Server).job),
		endpointOf("dead.cancel", anyProcess, guarded, (*Server).cancelJob),
		endpointOf("dead.jobs", eachProcess, guarded, (*Server).listJobs),
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
