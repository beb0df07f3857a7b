package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/internal/audit"
)

// HeaderClaims is the header of a request in which its sender says who it is. Nothing checks it.
const HeaderClaims = "Pinwheel-Claims"

// maxClaims is the longest such name that is recorded, in bytes.
const maxClaims = 200

// audited marks an endpoint that changes something: each request that succeeds is recorded.
func audited(e endpoint) endpoint {
	e.audited = true
	return e
}

// concerning is an answer that knows whose things were changed, where the request does not say it.
type concerning interface{ concerns() (owner string) }

// recorded is an answer that knows what was changed, which is recorded in place of the request. nil: nothing was
// changed.
type recorded interface{ recorded() any }

// record writes what a request has changed. The change is done: if it cannot be recorded, the process logs that.
func (s *Server) record(ctx context.Context, e endpoint, r micro.Request, owner string, answer any) {
	if !e.audited || s.cfg.Audit == nil {
		return
	}
	claims, request := r.Headers().Get(HeaderClaims), audit.Request(r.Data())
	if of, ok := answer.(recorded); ok {
		what := of.recorded()
		if what == nil {
			return
		}
		request, _ = json.Marshal(what) // strings and numbers cannot fail
	}
	one := audit.Record{
		Action: e.base, Source: audit.Door, Owner: owner, Node: s.node, Request: request, Claims: claims[:min(len(claims), maxClaims)],
	}
	if owner == "" {
		one.Source, one.Owner = audit.Control, audit.OwnerOf(r.Data())
		if of, ok := answer.(concerning); ok && one.Owner == "" {
			one.Owner = of.concerns()
		}
	}
	if err := s.cfg.Audit.Write(ctx, one); err != nil {
		s.cfg.Log.Error().Err(err).Str("endpoint", e.name).Str("owner", one.Owner).RawJSON("request", one.Request).Msg("change is not in the audit stream")
	}
}

// ListAudit chooses records of changes.
type ListAudit struct {
	Owner string `json:"owner,omitempty"`
	Since string `json:"since,omitempty"` // RFC 3339, or a duration before now
	After uint64 `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

func (r *ListAudit) restrict(owner string) error { return fixOwner(&r.Owner, owner) }

// Parse parses the fields. Its error is an *Error with the wrong field.
func (r ListAudit) Parse() (f audit.Filter, err error) {
	if err := CheckName("owner", r.Owner); err != nil {
		return f, err
	}
	f.Owner, f.After = r.Owner, r.After
	if r.Since != "" {
		var ok bool
		if f.Since, ok = parseSince(r.Since, time.Now()); !ok {
			return f, wrongField("since", " %q: it is a duration like 90m, or a time in RFC 3339 like 2026-01-02T15:04:05Z", r.Since)
		}
	}
	return f, nil
}

// AuditList is a page of the records of changes.
type AuditList struct {
	Changes []*audit.Record `json:"changes"`
	Next    uint64          `json:"next,omitempty"` // id after which the next page begins; 0 at the end
}

// listAudit lists what was changed, the oldest first.
func (s *Server) listAudit(ctx context.Context, r ListAudit) (AuditList, error) {
	list := AuditList{Changes: []*audit.Record{}}
	f, err := r.Parse()
	if err != nil {
		return list, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	if s.cfg.Audit == nil {
		return list, errors.New("this process has no audit stream")
	}
	room := s.answerRoom()
	for one, err := range s.cfg.Audit.List(ctx, f) {
		if err != nil {
			if ctx.Err() != nil {
				err = &Error{Code: http.StatusServiceUnavailable, Text: "looking took too long: say since when"}
			}
			return list, err
		}
		text, err := json.Marshal(one)
		if err != nil {
			return list, err
		}
		if room -= len(text) + 1; len(list.Changes) == limit || room < 0 && len(list.Changes) > 0 {
			list.Next = list.Changes[len(list.Changes)-1].Seq
			break
		}
		list.Changes = append(list.Changes, one)
	}
	return list, nil
}

// Audit lists what was changed.
func (c *Client) Audit(ctx context.Context, r ListAudit) (AuditList, error) {
	return asked[AuditList](ctx, c, "audit.list", r)
}
