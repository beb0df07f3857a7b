package control

import (
	"context"
	"encoding/json"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// OwnerList has the policies of the owners that have one.
type OwnerList struct {
	Owners map[string]workers.Policy `json:"owners"`
}

// Owners lists the owners that have a policy.
func (o *Operations) Owners(ctx context.Context, _ None) (OwnerList, error) {
	all, err := o.policies.List(ctx)
	return OwnerList{all}, err
}

// OwnerName names an owner.
type OwnerName struct {
	Owner string `json:"owner"`
}

func (r OwnerName) check() error {
	if err := events.CheckName("owner", r.Owner); err != nil {
		return wrongName("owner", err)
	}
	return nil
}

// OwnerPolicy is the policy of an owner.
type OwnerPolicy struct {
	Owner  string         `json:"owner"`
	Policy workers.Policy `json:"policy"`
}

// OwnerPolicy returns the policy of an owner.
func (o *Operations) OwnerPolicy(ctx context.Context, r OwnerName) (OwnerPolicy, error) {
	if err := r.check(); err != nil {
		return OwnerPolicy{}, err
	}
	p, err := o.policies.Get(ctx, r.Owner)
	return OwnerPolicy{r.Owner, p}, err
}

// SetOwner changes the policy of an owner.
type SetOwner struct {
	OwnerName
	// Policy is a JSON object with the fields of workers.Policy that change.
	Policy json.RawMessage `json:"policy,omitempty"`
}

// SetOwnerPolicy changes the fields of an owner's policy that the request names, and returns the policy.
func (o *Operations) SetOwnerPolicy(ctx context.Context, r SetOwner) (OwnerPolicy, error) {
	if err := r.check(); err != nil {
		return OwnerPolicy{}, err
	}
	if len(r.Policy) == 0 {
		return OwnerPolicy{}, refused("policy is missing: it is an object with what is to change")
	}
	var p workers.Policy
	if err := decodeRequest(r.Policy, &p); err != nil {
		return OwnerPolicy{}, err
	}
	if err := p.Validate(); err != nil {
		return OwnerPolicy{}, refused("policy: %v", err)
	}
	// Decoding into the stored policy leaves the fields that the request does not name.
	p, err := o.policies.Set(ctx, r.Owner, func(p *workers.Policy) { _ = json.Unmarshal(r.Policy, p) })
	return OwnerPolicy{r.Owner, p}, err
}

// RemoveOwnerPolicy removes the policy of an owner. Then the configuration applies to the owner.
func (o *Operations) RemoveOwnerPolicy(ctx context.Context, r OwnerName) (OwnerPolicy, error) {
	if err := r.check(); err != nil {
		return OwnerPolicy{}, err
	}
	return OwnerPolicy{Owner: r.Owner}, o.policies.Remove(ctx, r.Owner)
}
