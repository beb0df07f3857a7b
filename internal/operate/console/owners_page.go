package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// ownersPage is the data of the list of owners.
type ownersPage struct {
	control.FoundOwners
	List    listing
	Traffic traffic
	Busy    map[string]busyOwner
}

// PolicyText is a policy in words, in one line; "" is none.
func (ownersPage) PolicyText(p *workers.Policy) (string, error) {
	if p == nil {
		return "", nil
	}
	words, err := wordsOf(p)
	return strings.Join(words, ", "), err
}

// wordsOf says what the fields of a value are, in their order: "weight 2", "ceilings cpuMs 200".
func wordsOf(v any) (words []string, err error) {
	value, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(value))
	if _, err = in.Token(); err != nil { // {
		return nil, err
	}
	for in.More() {
		name, _ := in.Token() // json.Marshal has written it
		var field json.RawMessage
		if err := in.Decode(&field); err != nil {
			return nil, err
		}
		said := []string{text(field)}
		if field[0] == '{' {
			if said, err = wordsOf(field); err != nil {
				return nil, err
			}
		}
		for _, s := range said {
			words = append(words, fmt.Sprint(name, " ", s))
		}
	}
	return words, nil
}

func listOwners(c *call) (*page, error) {
	l, wrong := c.listing("workers", byTraffic)
	p := ownersPage{List: l, Busy: map[string]busyOwner{}}
	show := func(err error) (*page, error) {
		return &page{view: "owners", title: "Owners", place: "owners", data: p}, err
	}
	if wrong != nil {
		return show(wrong)
	}
	var err error
	if p.Traffic, err = c.traffic(l.Sort == byTraffic); err != nil {
		return nil, err
	}
	for _, o := range p.Traffic.Busy() {
		p.Busy[o.Owner.Owner] = o
	}
	r := control.FindOwners{Match: c.arg("match")}
	if l.Sort != byTraffic {
		r.Sort, r.Skip = l.Sort, l.Skip()
		p.FoundOwners, err = findOwners(c.ctx, c.fleet(), r)
		p.List.Total = p.Total
		return show(err)
	}
	busiest := p.Traffic.owners(r.Match)
	if p.List.Total, r.Names = len(busiest), l.slice(busiest); len(r.Names) == 0 {
		return show(nil)
	}
	p.FoundOwners, err = findOwners(c.ctx, c.fleet(), r)
	slices.SortFunc(p.Owners, func(a, b control.OwnerSummary) int {
		return slices.Index(busiest, a.Owner) - slices.Index(busiest, b.Owner)
	})
	return show(err)
}

// ownerPage is the data of the page of an owner.
type ownerPage struct {
	Owner   string
	Policy  string // JSON; {} is none
	Text    string // of the editor: the policy, or what the person wrote when that was refused
	Workers control.FoundWorkers
	Dead    control.LetterCounts
	// Compilers are those that the fleet has for all owners. "" = all.
	Compilers workers.Compilers
	// Cell is that of owners whose policy has none. "" = shared.
	Cell workers.Cell
	Runs string // the cell in which its workers run; "" = the processes of the fleet
	Hour hour
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
	if p.Text = p.Policy; in.http.PostForm.Has("policy") {
		p.Text = plainLines(in.form("policy"))
	}
	if p.Workers, err = control.Ask(ctx, fleet, control.WorkersFind,
		control.FindWorkers{Owner: p.Owner, Limit: 20}); err != nil {
		return nil, err
	}
	if p.Dead, err = control.Ask(ctx, fleet, control.DeadCounts,
		control.CountLetters{Owner: p.Owner, Limit: 20}); err != nil {
		return nil, err
	}
	settings, err := control.Ask(ctx, fleet, control.GetSettings, control.None{})
	if err != nil {
		return nil, err
	}
	if settings.Compilers.OrDefault() != workers.CompilersFull {
		p.Compilers = settings.Compilers
	}
	if settings.Cell.OrOf("") != workers.CellShared {
		p.Cell = settings.Cell
	}
	p.Hour = hourOf(ctx, fleet, p.Owner)
	p.Runs = workers.CellOf(p.Owner, policy.Policy, settings.Cell)
	return &page{view: "owner", title: p.Owner, place: "owners", data: p}, nil
}

// setPolicy replaces the policy: what the form leaves out is as the configuration says. What is refused stays in the
// editor.
func setPolicy(c *call) (*page, error) {
	owner, text := control.OwnerName{Owner: c.path("owner")}, c.form("policy")
	fields, err := policyFields(text)
	if err != nil {
		return c.again(showOwner, err)
	}
	was, err := control.Ask(c.ctx, c.fleet(), control.OwnersGet, owner)
	if err != nil {
		return nil, err
	}
	if seen, err := indented(was.Policy); err != nil || seen != plainLines(c.form("seen")) {
		return c.again(showOwner, &control.Error{Code: 409,
			Text: "somebody has changed the policy meanwhile. What you wrote is below; what applies now is beside it"})
	}
	full, err := withZeros(was.Policy, fields)
	if err != nil {
		return nil, err
	}
	if _, err := control.Ask(c.ctx, c.fleet(), control.OwnersSet,
		control.SetOwner{OwnerName: owner, Policy: full}); err != nil {
		return c.again(showOwner, err)
	}
	return c.done("/owners/"+owner.Owner, "The policy of %s is changed.", owner.Owner)
}

// policyFields reads what a person wrote. Its error says in which line it is wrong.
func policyFields(text string) (fields map[string]json.RawMessage, err error) {
	err = json.Unmarshal([]byte(text), &fields)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line := 1 + strings.Count(text[:min(len(text), int(syntax.Offset))], "\n")
		return nil, &control.Error{Code: 400, Field: "policy",
			Text: fmt.Sprintf("policy: it is a JSON object, and line %d is no JSON: %v", line, err)}
	case err != nil || fields == nil:
		return nil, wrongForm("policy", text[:min(len(text), 80)], "it is a JSON object")
	}
	return fields, nil
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
