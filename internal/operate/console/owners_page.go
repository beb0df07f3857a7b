package console

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// ownersPage is the data of the list of owners.
type ownersPage struct {
	control.FoundOwners
	Busy  map[string]flow.Owner // those that have events in some process
	Query url.Values
}

// PolicyText is a policy in one line; "" is none.
func (ownersPage) PolicyText(p *workers.Policy) (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(p)
	return string(text), err
}

func listOwners(c *call) (*page, error) {
	q := c.query()
	found, err := control.Ask(c.ctx, c.fleet(), control.OwnersFind, control.FindOwners{Match: q.Get("match"),
		After: q.Get("after"), Limit: pageSize})
	if err != nil {
		return nil, err
	}
	state, err := c.watcher.after(c.ctx, 0)
	if err != nil {
		return nil, err
	}
	p := ownersPage{FoundOwners: found, Busy: map[string]flow.Owner{}, Query: q}
	for _, o := range state.Now.Owners {
		p.Busy[o.Owner] = o
	}
	return &page{view: "owners", title: "Owners", place: "owners", data: p}, nil
}

// ownerPage is the data of the page of an owner.
type ownerPage struct {
	Owner   string
	Policy  string // JSON; {} is none
	Workers control.FoundWorkers
	Dead    control.LetterCounts
}

func showOwner(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	p := ownerPage{Owner: in.path("owner")}
	policy, err := control.Ask(ctx, fleet, control.OwnersGet, control.OwnerName{Owner: p.Owner})
	if err != nil {
		return nil, err
	}
	if p.Policy, err = indented(policy.Policy); err != nil {
		return nil, err
	}
	if p.Workers, err = control.Ask(ctx, fleet, control.WorkersFind,
		control.FindWorkers{Owner: p.Owner, Limit: 20}); err != nil {
		return nil, err
	}
	if p.Dead, err = control.Ask(ctx, fleet, control.DeadCounts,
		control.CountLetters{Owner: p.Owner, Limit: 20}); err != nil {
		return nil, err
	}
	return &page{view: "owner", title: p.Owner, place: "owners", data: p}, nil
}

// setPolicy replaces the policy: what the form leaves out is as the configuration says.
func setPolicy(c *call) (*page, error) {
	owner, text := control.OwnerName{Owner: c.path("owner")}, c.form("policy")
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return nil, wrongForm("policy", text[:min(len(text), 80)], "it is a JSON object")
	}
	was, err := control.Ask(c.ctx, c.fleet(), control.OwnersGet, owner)
	if err != nil {
		return nil, err
	}
	if seen, err := indented(was.Policy); err != nil || seen != plainLines(c.form("seen")) {
		return nil, &control.Error{Code: 409, Text: "somebody has changed the policy meanwhile: load the page again"}
	}
	full, err := withZeros(was.Policy, fields)
	if err != nil {
		return nil, err
	}
	if _, err := control.Ask(c.ctx, c.fleet(), control.OwnersSet,
		control.SetOwner{OwnerName: owner, Policy: full}); err != nil {
		return nil, err
	}
	return c.done("/owners/"+owner.Owner, "The policy of %s is changed.", owner.Owner)
}

// withZeros adds a zero for each field that a policy has and the new one leaves out: a request changes only what it
// names.
func withZeros(was workers.Policy, fields map[string]json.RawMessage) (json.RawMessage, error) {
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	var old map[string]json.RawMessage
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	for name, value := range old {
		if _, stays := fields[name]; !stays {
			fields[name] = zeroLike(value)
		}
	}
	return json.Marshal(fields)
}

// zeroLike is the zero value of the type that a JSON value has.
func zeroLike(value json.RawMessage) json.RawMessage {
	switch value[0] {
	case '"':
		return json.RawMessage(`""`)
	case '[':
		return json.RawMessage(`[]`)
	case '{':
		return json.RawMessage(`{}`)
	case 't', 'f':
		return json.RawMessage(`false`)
	}
	return json.RawMessage(`0`)
}

func removePolicy(c *call) (*page, error) {
	owner := control.OwnerName{Owner: c.path("owner")}
	if _, err := control.Ask(c.ctx, c.fleet(), control.OwnersRemove, owner); err != nil {
		return nil, err
	}
	return c.done("/owners/"+owner.Owner, "%s has no policy any more: the configuration applies.", owner.Owner)
}
