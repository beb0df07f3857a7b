package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// connection is how a command reaches the fleet.
type connection struct {
	cfg      config.Config // of commands that are marked needsConfig
	warnings io.Writer

	natsErr atomic.Pointer[error] // the last error that NATS reported
}

// isOwner reports whether the user is an owner's, as PINWHEEL_OWNER says. Such a user may not use JetStream: processes
// do everything for it.
func (e *connection) isOwner() bool { return e.cfg.Owner != "" }

// connect opens a connection and checks that Pinwheel's streams exist. The caller closes it.
func (e *connection) connect(ctx context.Context) (*control.Remote, error) {
	if err := e.refuseOwner("this command"); err != nil {
		return nil, err
	}
	nc, err := e.dial("")
	if err != nil {
		return nil, err
	}
	err = refuseUser(ctx, nc, "this command")
	var r *control.Remote
	if err == nil {
		r, err = control.FindFleet(ctx, nc, e.cfg.Prefix)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return r, nil
}

// dial opens a connection. It asks NATS for nothing more, because an owner's user may not do that. Replies may go to
// the owner's inboxes.
func (e *connection) dial(owner string, also ...nats.Option) (*nats.Conn, error) {
	// The server reports a refused message later, out of order; complain prints it. A refused subscription is an error
	// where it is read.
	opts := []nats.Option{nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.natsErr.Store(&err) })}
	if owner != "" {
		inbox := e.cfg.InboxFor(owner)
		if e.isOwner() && inbox == strings.TrimSuffix(nats.InboxPrefix, ".") {
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

// withFleet calls f with a client of the fleet. With PINWHEEL_OWNER it is one of the owner API. Without, it is one of
// the control endpoints, and this program handles what no process of the fleet handles for it.
func (e *connection) withFleet(ctx context.Context, f func(*control.Client) error) error {
	if e.isOwner() {
		return e.withProcess(f)
	}
	return e.withRemote(ctx, func(c *control.Client, _ *control.Remote) error { return f(c) })
}

// withRemote does what withFleet does for the fleet's user. f may also use what the fleet stores.
func (e *connection) withRemote(ctx context.Context, f func(*control.Client, *control.Remote) error) error {
	r, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	c := control.NewClient(r.NC, e.cfg.Prefix, e.cfg.ControlToken)
	c.Claim(claims())
	c.OrHere(e.here(r))
	defer c.Close()
	return e.explained(f(c, r))
}

// withProcess calls f with a client of the fleet, for what only a process can do.
func (e *connection) withProcess(f func(*control.Client) error) error {
	nc, err := e.dial(e.cfg.Owner)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := control.NewClient(nc, e.cfg.Prefix, e.cfg.ControlToken)
	if e.isOwner() {
		c = control.NewOwnerClient(nc, e.cfg.Prefix, e.cfg.Owner)
	}
	c.Claim(claims())
	return e.explained(f(c))
}

// here says how this program handles requests itself.
func (e *connection) here(r *control.Remote) control.Here {
	return control.Here{
		Remote:  r,
		KVBytes: int64(e.cfg.OwnerKVBytes),
		OpenChecker: func(log func(events.LogLine)) control.Checker {
			return &localChecker{&e.cfg, r, log}
		},
		Warn: func(err error) { fmt.Fprintln(e.warnings, "pinwheel: the change is done, and not recorded:", err) },
	}
}

// record records a change that only a command makes: no process has an endpoint for it.
func (e *connection) record(ctx context.Context, r *control.Remote, action, owner string, request any) {
	h := e.here(r)
	if err := h.Record(ctx, action, owner, claims(), request); err != nil && !errors.Is(err, audit.ErrNoStream) {
		h.Warn(err)
	}
}
