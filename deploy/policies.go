package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// BucketOwners is the KV bucket of the owners' policies. The key is the owner.
const BucketOwners = "PINWHEEL_OWNERS"

// Policies has the policy of each owner, in JetStream. Any number of goroutines and processes may use it at once.
type Policies struct {
	kv  jetstream.KeyValue
	cfg Config
}

// OpenPolicies creates the bucket, or updates it to what cfg says. There is nothing to close.
func OpenPolicies(ctx context.Context, js jetstream.JetStream, cfg Config) (*Policies, error) {
	cfg = cfg.WithDefaults()
	kv, err := (&resources.Reconciler{JS: js, Log: cfg.Log}).Bucket(ctx, cfg.owners())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketOwners, err)
	}
	return &Policies{kv, cfg}, nil
}

// Get is the policy of an owner; the zero Policy if it has none.
func (s *Policies) Get(ctx context.Context, owner string) (workers.Policy, error) {
	if err := events.CheckName("owner", owner); err != nil {
		return workers.Policy{}, err
	}
	e, err := s.kv.Get(ctx, owner)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return workers.Policy{}, nil
	}
	if err != nil {
		return workers.Policy{}, fmt.Errorf("read policy of %s: %w", owner, err)
	}
	return decodePolicy(e)
}

func decodePolicy(e jetstream.KeyValueEntry) (p workers.Policy, err error) {
	dec := json.NewDecoder(bytes.NewReader(e.Value()))
	dec.DisallowUnknownFields() // do not ignore a limit that this process does not know
	if err = dec.Decode(&p); err == nil {
		err = p.Validate()
	}
	if err != nil {
		return workers.Policy{}, fmt.Errorf("policy of %s: %w", e.Key(), err)
	}
	return p, nil
}

// Set changes an owner's policy. change gets the current policy. Each process has the new one within moments. A policy
// that says nothing is removed.
func (s *Policies) Set(ctx context.Context, owner string, change func(*workers.Policy)) (workers.Policy, error) {
	if err := events.CheckName("owner", owner); err != nil {
		return workers.Policy{}, err
	}
	for {
		var p workers.Policy
		var revision uint64
		e, err := s.kv.Get(ctx, owner)
		if err == nil {
			revision = e.Revision()
			p, err = decodePolicy(e)
		} else if errors.Is(err, jetstream.ErrKeyNotFound) {
			err = nil
		}
		if err != nil {
			return p, fmt.Errorf("read policy of %s: %w", owner, err)
		}
		if change(&p); len(p.Paused) == 0 {
			p.Paused = nil
		}
		if err := p.Validate(); err != nil {
			return p, err
		}
		text, err := json.Marshal(p)
		if err != nil {
			return p, fmt.Errorf("encode policy of %s: %w", owner, err)
		}
		switch {
		case revision == 0 && p.IsZero():
		case revision == 0:
			_, err = s.kv.Create(ctx, owner, text)
		case p.IsZero():
			err = s.kv.Delete(ctx, owner, jetstream.LastRevision(revision))
		default:
			_, err = s.kv.Update(ctx, owner, text, revision)
		}
		if err == nil || !isConflict(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			return p, resources.Stranger(err, "$KV."+s.kv.Bucket()+"."+owner)
		}
	}
}

// Remove deletes an owner's policy but what is paused. The values of the configuration hold for the owner again.
func (s *Policies) Remove(ctx context.Context, owner string) error {
	_, err := s.Set(ctx, owner, func(p *workers.Policy) { *p = workers.Policy{Paused: p.Paused} })
	return err
}

// List is all policies, by owner.
func (s *Policies) List(ctx context.Context) (map[string]workers.Policy, error) {
	all := map[string]workers.Policy{}
	keys, err := s.kv.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	for owner := range keys.Keys() {
		p, err := s.Get(ctx, owner)
		if err != nil {
			return nil, err
		}
		all[owner] = p
	}
	return all, nil
}

// Watch calls set with each policy and with each change, until ctx is done; with the zero Policy when a policy was
// removed. It calls settled when all policies have come that were stored at the start, and may call it again. One
// goroutine calls both. A policy that cannot be read is logged and changes nothing.
func (s *Policies) Watch(ctx context.Context, set func(owner string, p workers.Policy), settled func()) {
	watch := bucketWatch{
		kv: s.kv, what: "owners", every: s.cfg.CheckEvery, log: s.cfg.Log,
		follower: &policyFollower{log: s.cfg.Log, set: set, settled: settled, known: map[string]workers.Policy{}},
	}
	_ = watch.run(ctx) // ctx's error
}

// policyFollower is the follower of the bucket of policies.
type policyFollower struct {
	log     zerolog.Logger
	set     func(owner string, p workers.Policy)
	settled func()
	known   map[string]workers.Policy // that are not zero
	gone    map[string]bool           // known owners without an entry in the pass in progress
}

func (f *policyFollower) begin(bool) {
	f.gone = map[string]bool{}
	for owner := range f.known {
		f.gone[owner] = true
	}
}

func (f *policyFollower) take(_ context.Context, e jetstream.KeyValueEntry, _ bool) error {
	delete(f.gone, e.Key())
	if e.Operation() != jetstream.KeyValuePut {
		f.change(e.Key(), workers.Policy{})
		return nil
	}
	p, err := decodePolicy(e)
	if err != nil {
		f.log.Error().Err(err).Msg("a policy cannot be read; keeping the previous one")
		return nil
	}
	f.change(e.Key(), p)
	return nil
}

func (f *policyFollower) settle(context.Context) error {
	for owner := range f.gone {
		f.change(owner, workers.Policy{})
	}
	f.settled()
	return nil
}

func (f *policyFollower) tick(time.Time) (keys int) { return len(f.known) }

func (f *policyFollower) change(owner string, p workers.Policy) {
	if f.known[owner].Equal(p) {
		return
	}
	if f.known[owner] = p; p.IsZero() {
		delete(f.known, owner)
	}
	f.set(owner, p)
}
