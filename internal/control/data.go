package control

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/bindings"
)

// Data opens what an owner's workers have stored by bindings. kvBytes is the size of a bucket that it creates, if the
// owner's policy says nothing; the fleet's processes correct it.
func (r *Remote) Data(ctx context.Context, owner string, kvBytes int64) (*bindings.Data, error) {
	p, err := r.policy(ctx, owner)
	if err != nil {
		return nil, err
	}
	return bindings.OpenData(r.NC, r.JS, bindings.Config{Replicas: r.replicas, KVBytes: kvBytes, OnlyMissing: true, Log: zerolog.Nop()}, owner, p), nil
}

// Objects opens the objects that an owner's workers have stored.
func (r *Remote) Objects(ctx context.Context, owner string) (*bindings.ObjectData, error) {
	p, err := r.policy(ctx, owner)
	if err != nil {
		return nil, err
	}
	return bindings.OpenObjects(r.NC, r.JS, bindings.Config{Replicas: r.replicas, OnlyMissing: true, Log: zerolog.Nop()}, owner, p), nil
}

func (r *Remote) policy(ctx context.Context, owner string) (events.Policy, error) {
	policies, err := r.Policies(ctx)
	if err != nil {
		return events.Policy{}, err
	}
	return policies.Get(ctx, owner)
}
