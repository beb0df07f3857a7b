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

// The owner API: endpoints that concern one owner are answered on PREFIX.owner.OWNER.NAME too. There the owner comes
// from the subject, which NATS permits to this owner's users only. No token is needed.

const (
	// knownOwners is how many owners a process remembers the uploads of.
	knownOwners = 4096
)

// ownerSubject is where an endpoint is answered for an owner.
func ownerSubject(prefix, owner, name string) string { return prefix + ".owner." + owner + "." + name }

// subjectOwner returns the owner in a subject of the owner API.
func subjectOwner(prefix, subject string) (owner string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix+".owner.")
	owner, _, more := strings.Cut(rest, ".")
	return owner, ok && more && events.ValidName(owner)
}

// takeOwned takes one request to the owner API. It runs on the goroutine of a subscription that all owners share, so
// it looks only at the subjects of a request that is not handled.
func (s *Server) takeOwned(e row, r micro.Request) {
	owner, ok := subjectOwner(s.cfg.Prefix, r.Subject())
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
		s.respond(r, refusal(http.StatusServiceUnavailable, fmt.Sprintf("requests of owner %s wait for more than %s in this process: try again", r.owner,
			requestTimeout)), nil)
		return
	}
	s.serve(r.row, r, r.owner, func(ctx context.Context) (any, error) { return r.handle(ctx, s, r.owner, r.Data()) })
}
