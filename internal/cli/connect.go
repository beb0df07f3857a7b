package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"
	"golang.org/x/mod/semver"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// connectTimeout bounds the connection to one server.
const connectTimeout = 5 * time.Second

// connect opens the connection that c describes. The error says where to.
func connect(c Config, opts ...nats.Option) (*nats.Conn, error) {
	base := []nats.Option{nats.Name("pinwheel"), nats.Timeout(connectTimeout)}
	own, err := c.natsOptions()
	if err != nil {
		return nil, err
	}
	opts = append(append(base, own...), opts...)
	if c.NatsContext != "" {
		nc, _, err := natscontext.Connect(c.NatsContext, opts...)
		if err != nil {
			return nil, fmt.Errorf("connect with NATS context %q (PINWHEEL_NATS_CONTEXT): %w", c.NatsContext, err)
		}
		return nc, nil
	}
	nc, err := nats.Connect(c.ClientURL(), opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", redacted(c.ClientURL()), err)
	}
	return nc, nil
}

// redacted is a list of URLs without passwords.
func redacted(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}

// remote is a connection to the NATS of a running fleet.
type remote struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects events.Subjects
	replicas int // of the fleet's streams
}

// connect opens a connection and sees that Pinwheel's streams are there. Close it after use.
func (e *env) connect(ctx context.Context) (*remote, error) { return e.connectFor(ctx, "") }

// connectFor is connect for calls to the workers of an owner: replies may go to its inboxes.
func (e *env) connectFor(ctx context.Context, owner string) (*remote, error) {
	nc, err := e.dial(owner)
	if err != nil {
		return nil, err
	}
	c := &remote{nc: nc, subjects: events.Subjects(e.cfg.Prefix)}
	if err := c.look(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// dial opens a connection and asks NATS for nothing more: an owner's user may not. Replies may go to the owner's inboxes.
func (e *env) dial(owner string) (*nats.Conn, error) {
	// What a server has against a message it tells later, out of order; complain prints it.
	opts := []nats.Option{nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.natsErr.Store(&err) })}
	if owner != "" {
		opts = append(opts, nats.CustomInboxPrefix(e.cfg.inboxFor(owner)))
	}
	nc, err := connect(e.cfg, opts...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return nil, fmt.Errorf("%w; PINWHEEL_NATS_CREDS, _USER, _TOKEN, _NKEY or _CONTEXT say who you are", err)
	case errors.Is(err, nats.ErrNoServers) && e.cfg.NatsContext == "":
		return nil, fmt.Errorf("no NATS answers at %s; start a fleet with 'pinwheel dev FILE' or 'pinwheel serve', or say with PINWHEEL_NATS_URL where one is",
			redacted(e.cfg.ClientURL()))
	case err != nil:
		return nil, fmt.Errorf("%w; start a fleet with 'pinwheel dev FILE' or 'pinwheel serve', or say with PINWHEEL_NATS_URL where one is", err)
	}
	return nc, nil
}

// look finds the event stream, by which one knows that a fleet has been here.
func (c *remote) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if c.js, err = jetstream.New(c.nc); err != nil {
		return err
	}
	s, err := c.js.Stream(ctx, consumer.StreamEvents)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("NATS at %s has no stream %s: no fleet has run there yet; 'pinwheel serve' creates it",
			c.nc.ConnectedUrlRedacted(), consumer.StreamEvents)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("NATS at %s has no JetStream: start nats-server with -js", c.nc.ConnectedUrlRedacted())
	case err != nil:
		return fmt.Errorf("stream %s at %s: %w", consumer.StreamEvents, c.nc.ConnectedUrlRedacted(), err)
	}
	wanted := consumer.Assets(consumer.Config{Prefix: c.subjects}, 0)
	if err := assets.CheckPrefix(ctx, c.js, wanted[:1]); err != nil { // the event stream tells enough
		return err
	}
	c.replicas = max(1, s.CachedInfo().Config.Replicas)
	return nil
}

func (c *remote) close() { c.nc.Close() }

// store opens the store of workers as the fleet has it.
func (c *remote) store(ctx context.Context) (*deploy.Store, error) {
	return deploy.Open(ctx, c.js, deploy.Config{Replicas: c.replicas})
}

func (c *remote) policies(ctx context.Context) (*deploy.Policies, error) {
	return deploy.OpenPolicies(ctx, c.js, deploy.Config{Replicas: c.replicas})
}

func (c *remote) deadLetters() *consumer.DeadLetters {
	return consumer.NewDeadLetters(c.js, c.subjects)
}

// minServer is the oldest nats-server that a fleet works with: schedules with cron, and atomic batches.
const minServer = "2.14"

// checkServer refuses a server that lacks what the fleet needs, before anything is made on it. A version that cannot be read is let through.
func checkServer(nc *nats.Conn) error {
	v := nc.ConnectedServerVersion()
	if v := "v" + v; semver.IsValid(v) && semver.Compare(semver.MajorMinor(v), "v"+minServer) < 0 {
		return fmt.Errorf("nats-server at %s is %s: Pinwheel needs %s or later", nc.ConnectedUrlRedacted(), nc.ConnectedServerVersion(), minServer)
	}
	return nil
}
