package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/pinwheel-run/pinwheel/events"
)

// The owner's door: endpoints that concern one owner are answered on PREFIX.owner.OWNER.NAME too. There the owner comes
// from the subject, which NATS permits to this owner's users only. No token is needed.

const (
	// maxDoorIDs is how many letters a request of an owner may name.
	maxDoorIDs = 1000
	// knownDoors is how many owners a process remembers the uploads of.
	knownDoors = 4096
)

// owned is a request that concerns one owner.
type owned interface {
	// restrict limits the request to an owner that the fleet has determined. It returns an error with code 403 if the
	// request names another one.
	restrict(owner string) error
}

// ownedOf does what endpointOf does, for an endpoint that is answered at the owner's door too.
func ownedOf[Request, Answer any, P interface {
	*Request
	owned
}](name string, e each, g guard, do func(*Server, context.Context, Request) (Answer, error),
) endpoint {
	of := endpointOf(name, e, g, do)
	of.door = func(ctx context.Context, s *Server, owner string, data []byte) (any, error) {
		var r Request
		if err := decodeRequest(data, &r); err != nil {
			return nil, err
		}
		if err := P(&r).restrict(owner); err != nil {
			return nil, err
		}
		return do(s, ctx, r)
	}
	return of
}

// doorSubject is where an endpoint is answered for an owner.
func doorSubject(prefix, owner, name string) string { return prefix + ".owner." + owner + "." + name }

// doorOwner returns the owner in a subject of the door.
func doorOwner(prefix, subject string) (owner string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix+".owner.")
	owner, _, more := strings.Cut(rest, ".")
	return owner, ok && more && events.ValidName(owner)
}

// takeOwned takes one request at an owner's door. It runs on the goroutine of a subscription that all owners share, so
// it looks only at the subjects of a request that is not handled.
func (s *Server) takeOwned(e endpoint, r micro.Request) {
	owner, ok := doorOwner(s.cfg.Prefix, r.Subject())
	if !ok {
		return // it has no owner, so no one may get an answer
	}
	decoder := events.Decoder{Subjects: s.subjects, ReplyPrefixes: s.cfg.ReplyPrefixes}
	if err := decoder.CheckReplyTo(r.Reply(), owner); err != nil {
		s.cfg.Log.Debug().Err(err).Str("endpoint", e.name).Str("owner", owner).Msg("request of an owner is not answered: its reply subject is no inbox of the owner")
		return
	}
	if err, answer := s.gate.enter(ownerRequest{e, r, owner, time.Now()}); answer {
		s.respond(r, refusal(codeOf(err), err.Error()), nil)
	}
}

// handleOwned answers one request of an owner whose turn it is.
func handleOwned(s *Server, r ownerRequest) {
	if waited := time.Since(r.at); waited > requestTimeout {
		s.respond(r, refusal(http.StatusServiceUnavailable, fmt.Sprintf("requests of owner %s wait for more than %s in this process: try again", r.owner, requestTimeout)), nil)
		return
	}
	s.serve(r.endpoint, r, r.owner, func(ctx context.Context) (any, error) { return r.door(ctx, s, r.owner, r.Data()) })
}

// foreign is the error of a request that names another owner.
func foreign(field, named, owner string) error {
	return &Error{Code: http.StatusForbidden, Field: field, Text: fmt.Sprintf("%s %.80q is not of owner %s, whose door this is", field, named, owner)}
}

// fixOwner sets the owner of a filter.
func fixOwner(named *string, owner string) error {
	if *named != "" && *named != owner {
		return foreign("owner", *named, owner)
	}
	*named = owner
	return nil
}

// fixBoth sets the owner of a filter that may have it in the worker too, as OWNER/WORKER.
func fixBoth(named, worker *string, owner string) error {
	if o, w, both := strings.Cut(*worker, "/"); both {
		if o != owner {
			return foreign("worker", *worker, owner)
		}
		*worker = w
	}
	return fixOwner(named, owner)
}

// fixWorker sets the owner of a worker that is named as OWNER/WORKER, or as WORKER.
func fixWorker(worker *string, owner string) error {
	o, _, both := strings.Cut(*worker, "/")
	switch {
	case both && o != owner:
		return foreign("worker", *worker, owner)
	case !both && *worker != "":
		*worker = owner + "/" + *worker
	}
	return nil
}
