package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
)

// HeaderClaims is the header of a request in which its sender says who it is. Nothing checks it.
const HeaderClaims = "Pinwheel-Claims"

// maxClaims is the longest such name that is recorded, in bytes.
const maxClaims = 200

// concerning is an answer that knows whose things were changed, where the request does not say it.
type concerning interface{ concerns() (owner string) }

// recorded is an answer that knows what was changed, which is recorded in place of the request. nil: nothing was
// changed.
type recorded interface{ recorded() any }

// change is a request that was done.
type change struct {
	action  string // name of the endpoint
	owner   string // whose API it came to; "": the fleet's user asked
	request []byte
	claims  string // what the sender says of itself
	answer  any
}

// recordRequest records what a request has changed. The change is done: if it cannot be recorded, the process logs
// that.
func (s *Server) recordRequest(ctx context.Context, c change) {
	if s.cfg.Audit == nil {
		return
	}
	if err := record(ctx, s, c); err != nil {
		s.cfg.Log.Error().Err(err).Str("endpoint", c.action).Str("owner", c.owner).
			RawJSON("request", audit.Request(c.request)).Msg("change is not in the audit stream")
	}
}

// record writes what a request has changed.
func record(ctx context.Context, s *Server, c change) error {
	request := audit.Request(c.request)
	if of, ok := c.answer.(recorded); ok {
		what := of.recorded()
		if what == nil {
			return nil
		}
		request, _ = json.Marshal(what) // strings and numbers cannot fail
	}
	one := audit.Record{
		Action: c.action, Source: audit.OwnerAPI, Owner: c.owner, Node: s.node, Request: request,
		Claims: c.claims[:min(len(c.claims), maxClaims)],
	}
	if c.owner == "" {
		one.Source, one.Owner = audit.Control, audit.OwnerOf(c.request)
		if of, ok := c.answer.(concerning); ok && one.Owner == "" {
			one.Owner = of.concerns()
		}
	}
	if s.here != nil {
		one.Source, one.User = audit.Command, natsUser(ctx, s.nc)
	}
	return s.cfg.Audit.Write(ctx, one)
}

// ListAudit chooses records of changes.
type ListAudit struct {
	Owner string `json:"owner,omitempty"`
	Since string `json:"since,omitempty"` // RFC 3339, or a duration before now
	After uint64 `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

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
