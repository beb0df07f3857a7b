package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// BucketOwners is the KV bucket of the owners' policies: the key is the owner.
const BucketOwners = "PINWHEEL_OWNERS"

// Policies holds what each owner may have, in JetStream. Any number of goroutines and processes may use it at once.
type Policies struct {
	kv  jetstream.KeyValue
	cfg Config
}

// OpenPolicies creates the bucket, or brings it to what cfg says. There is nothing to close.
func OpenPolicies(ctx context.Context, js jetstream.JetStream, cfg Config) (*Policies, error) {
	cfg = cfg.WithDefaults()
	kv, err := (&assets.Keeper{JS: js, Log: cfg.Log}).Bucket(ctx, cfg.owners())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketOwners, err)
	}
	return &Policies{kv, cfg}, nil
}

// Get is the policy of an owner; the zero one when nothing was said of it.
func (s *Policies) Get(ctx context.Context, owner string) (events.Policy, error) {
	if err := events.CheckName("owner", owner); err != nil {
		return events.Policy{}, err
	}
	e, err := s.kv.Get(ctx, owner)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return events.Policy{}, nil
	}
	if err != nil {
		return events.Policy{}, fmt.Errorf("read policy of %s: %w", owner, err)
	}
	return decodePolicy(e)
}

func decodePolicy(e jetstream.KeyValueEntry) (p events.Policy, err error) {
	dec := json.NewDecoder(bytes.NewReader(e.Value()))
	dec.DisallowUnknownFields() // a limit that this process does not know must not be ignored
	if err = dec.Decode(&p); err == nil {
		err = p.Validate()
	}
	if err != nil {
		return events.Policy{}, fmt.Errorf("policy of %s: %w", e.Key(), err)
	}
	return p, nil
}

// Set changes an owner's policy by change, which sees the one that stands. Every process has it within moments.
func (s *Policies) Set(ctx context.Context, owner string, change func(*events.Policy)) (events.Policy, error) {
	if err := events.CheckName("owner", owner); err != nil {
		return events.Policy{}, err
	}
	for {
		var p events.Policy
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
		change(&p)
		if err := p.Validate(); err != nil {
			return p, err
		}
		text, err := json.Marshal(p)
		if err != nil {
			return p, fmt.Errorf("encode policy of %s: %w", owner, err)
		}
		if revision == 0 {
			_, err = s.kv.Create(ctx, owner, text)
		} else {
			_, err = s.kv.Update(ctx, owner, text, revision)
		}
		if err == nil || !isConflict(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			return p, err
		}
	}
}

// Remove forgets an owner's policy: the configuration's shares are its own again.
func (s *Policies) Remove(ctx context.Context, owner string) error {
	if err := events.CheckName("owner", owner); err != nil {
		return err
	}
	return s.kv.Delete(ctx, owner)
}

// List is all policies, by owner.
func (s *Policies) List(ctx context.Context) (map[string]events.Policy, error) {
	all := map[string]events.Policy{}
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

// Watch tells set of every policy and of every change, until ctx is done; of one that was removed with the zero Policy. set is
// called by one goroutine. A policy that cannot be read changes nothing and is logged. What a watch has
// missed is found by reading everything again from time to time.
func (s *Policies) Watch(ctx context.Context, set func(owner string, p events.Policy)) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	known := map[string]events.Policy{}
	tell := func(owner string, p events.Policy) {
		if known[owner] == p {
			return
		}
		if known[owner] = p; p == (events.Policy{}) {
			delete(known, owner)
		}
		set(owner, p)
	}
	for ctx.Err() == nil {
		if err := s.watch(ctx, known, tell, wait.Reset); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("watch on owners begins anew")
			sleep(ctx, wait.NextBackOff())
		}
	}
}

// watch does it once, for some time.
func (s *Policies) watch(ctx context.Context, known map[string]events.Policy, tell func(string, events.Policy), synced func()) error {
	w, err := s.kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watch owners: %w", err)
	}
	defer stopWatch(w)
	gone := maps.Clone(known)
	again := time.NewTimer(12 * s.cfg.CheckEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the watch on owners was closed")
			case e == nil:
				synced()
				for owner := range gone {
					tell(owner, events.Policy{})
				}
			case e.Operation() != jetstream.KeyValuePut:
				tell(e.Key(), events.Policy{})
			default:
				delete(gone, e.Key())
				p, err := decodePolicy(e)
				if err != nil {
					s.cfg.Log.Error().Err(err).Msg("what stood before goes on")
					continue
				}
				tell(e.Key(), p)
			}
		}
	}
}
