package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// connect opens a connection and checks that Pinwheel's streams exist. The caller closes it.
func (e *env) connect(ctx context.Context) (*control.Remote, error) { return e.connectFor(ctx, "") }

// connectFor does what connect does, for calls to the workers of an owner: replies may go to the owner's inboxes.
func (e *env) connectFor(ctx context.Context, owner string) (*control.Remote, error) {
	if err := refuseOwner(e, "this command"); err != nil {
		return nil, err
	}
	nc, err := e.dial(owner)
	if err != nil {
		return nil, err
	}
	if err := refuseUser(ctx, nc, "this command"); err != nil {
		nc.Close()
		return nil, err
	}
	r, err := control.FindFleet(ctx, nc, e.cfg.Prefix)
	if err != nil {
		nc.Close()
		return nil, err
	}
	e.remote = r
	return r, nil
}

// dial opens a connection. It asks NATS for nothing more, because an owner's user may not do that. Replies may go to
// the owner's inboxes.
func (e *env) dial(owner string, also ...nats.Option) (*nats.Conn, error) {
	// The server reports a refused message later, out of order; complain prints it. A refused subscription is an error
	// where it is read.
	opts := []nats.Option{nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.natsErr.Store(&err) })}
	if owner != "" {
		inbox := e.cfg.InboxFor(owner)
		if isOwner(e) && inbox == strings.TrimSuffix(nats.InboxPrefix, ".") {
			inbox += "." + owner // what the user of an owner may read, also where replies may go to any inbox
		}
		opts = append(opts, nats.CustomInboxPrefix(inbox))
	}
	nc, err := config.Connect(e.cfg, append(opts, also...)...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return nil, fmt.Errorf("%w; PINWHEEL_NATS_CREDS, _USER, _TOKEN, _NKEY or _CONTEXT say who you are", err)
	case errors.Is(err, nats.ErrNoServers) && e.cfg.NatsContext == "":
		return nil, fmt.Errorf("no NATS answers at %s; start a fleet with 'pinwheel dev FILE' or 'pinwheel serve', or say with PINWHEEL_NATS_URL where one is",
			config.Redacted(e.cfg.ClientURL()))
	case err != nil:
		return nil, fmt.Errorf("%w; start a fleet with 'pinwheel dev FILE' or 'pinwheel serve', or say with PINWHEEL_NATS_URL where one is", err)
	}
	return nc, nil
}
