package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// lookTimeout limits the search for a fleet's streams.
const lookTimeout = 5 * time.Second

// Remote is access to a fleet through its NATS. It works when no process of the fleet runs.
type Remote struct {
	NC       *nats.Conn
	JS       jetstream.JetStream
	Subjects events.Subjects
	replicas int // of the fleet's streams
}

// FindFleet looks for the streams of a fleet. The error names what is missing.
func FindFleet(ctx context.Context, nc *nats.Conn, prefix string) (*Remote, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	r := &Remote{NC: nc, JS: js, Subjects: events.Subjects(prefix)}
	s, err := js.Stream(ctx, events.StreamEvents)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("NATS at %s has no stream %s: no fleet has run there yet; 'pinwheel serve' creates it",
			nc.ConnectedUrlRedacted(), events.StreamEvents)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return nil, fmt.Errorf("NATS at %s has no JetStream: start nats-server with -js", nc.ConnectedUrlRedacted())
	case err != nil:
		return nil, fmt.Errorf("stream %s at %s: %w", events.StreamEvents, nc.ConnectedUrlRedacted(), err)
	}
	wanted := consumer.Assets(consumer.Config{Prefix: r.Subjects}, 0)
	if err := resources.CheckPrefix(ctx, js, wanted[:1]); err != nil { // the event stream is enough
		return nil, err
	}
	r.replicas = max(1, s.CachedInfo().Config.Replicas)
	return r, nil
}

// Close closes the connection.
func (r *Remote) Close() { r.NC.Close() }

// Workers opens the fleet's store of workers.
func (r *Remote) Workers(ctx context.Context) (*deploy.Store, error) {
	conn, err := sources.NewConn(r.NC, "")
	if err != nil {
		return nil, err
	}
	check := sources.Checker{Conns: sources.Conns{"": conn}, Prefix: r.Subjects}
	return deploy.Open(ctx, r.JS, deploy.Config{Replicas: r.replicas, CheckSources: check.Check})
}

// Policies opens the store of the owners' policies.
func (r *Remote) Policies(ctx context.Context) (*deploy.Policies, error) {
	return deploy.OpenPolicies(ctx, r.JS, deploy.Config{Replicas: r.replicas})
}

// Secrets opens the store of secrets.
func (r *Remote) Secrets(ctx context.Context) (*deploy.Secrets, error) {
	return deploy.OpenSecrets(ctx, r.JS, deploy.Config{Replicas: r.replicas})
}

// DeadLetters returns the fleet's store of dead letters.
func (r *Remote) DeadLetters() *deadletter.Store {
	return deadletter.NewStore(r.JS, r.Subjects)
}

// Schedules returns the fleet's store of schedules.
func (r *Remote) Schedules() *schedule.Store { return schedule.NewStore(r.JS, r.Subjects) }

// settingsWait is how long Pinwheel waits for a fleet to answer with its settings.
const settingsWait = time.Second

// AllowedAddresses returns the non-public addresses that workers of the fleet may reach. It returns own if no process
// of the fleet answers.
func (r *Remote) AllowedAddresses(ctx context.Context, own []string) []string {
	ctx, cancel := context.WithTimeout(ctx, settingsWait)
	defer cancel()
	s, err := Ask(ctx, NewClient(r.NC, string(r.Subjects), ""), GetSettings, None{})
	if err != nil {
		return own
	}
	return s.AllowPrivateAddresses
}

// Data opens what an owner's workers have stored by bindings. kvBytes is the size of a bucket that it creates, if the
// owner's policy says nothing; the fleet's processes correct it.
func (r *Remote) Data(ctx context.Context, owner string, kvBytes int64) (*bindings.Data, error) {
	p, err := r.policy(ctx, owner)
	if err != nil {
		return nil, err
	}
	return bindings.OpenData(r.NC, r.JS, bindings.Config{Replicas: r.replicas, KVBytes: kvBytes, OnlyMissing: true,
		Log: zerolog.Nop()}, owner, p), nil
}

// Objects opens the objects that an owner's workers have stored.
func (r *Remote) Objects(ctx context.Context, owner string) (*bindings.ObjectData, error) {
	p, err := r.policy(ctx, owner)
	if err != nil {
		return nil, err
	}
	return bindings.OpenObjects(r.NC, r.JS, bindings.Config{Replicas: r.replicas, OnlyMissing: true, Log: zerolog.Nop()},
		owner, p), nil
}

func (r *Remote) policy(ctx context.Context, owner string) (workers.Policy, error) {
	policies, err := r.Policies(ctx)
	if err != nil {
		return workers.Policy{}, err
	}
	return policies.Get(ctx, owner)
}
