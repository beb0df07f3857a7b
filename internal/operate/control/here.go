package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
)

// Here is what a command of the fleet's user needs to handle requests itself.
type Here struct {
	Remote *Remote
	// KVBytes is the size of an owner's bucket of keys that is created, if the owner's policy says nothing.
	KVBytes int64
	// OpenChecker opens a checker that passes what a module writes to log.
	OpenChecker func(log func(events.LogLine)) Checker
	// Warn gets errors of what is not the request itself: a change that is done, and not recorded.
	Warn func(error)
}

// OrHere lets Ask handle a request in this program when the fleet does not: no process answers, or the fleet refuses
// the request because it has no token, or this client has another one. The program does what a process does, with the
// rights of its own user in JetStream, and records changes. From then on it handles all requests that it can. Endpoints
// that need a process are never handled here. It must be called before requests are sent.
func (c *Client) OrHere(h Here) { c.here = &h }

// IsHere reports whether requests are handled in this program.
func (c *Client) IsHere() bool {
	c.opening.Lock()
	defer c.opening.Unlock()
	return c.server != nil
}

// HandlesHere reports whether this program handles what is stored for an owner. It asks the fleet if that is not known:
// bytes that a process needs are stored in parts before, and this program takes them as they are.
func (c *Client) HandlesHere(ctx context.Context, owner string) (bool, error) {
	if c.here == nil {
		return false, nil
	}
	if !c.IsHere() {
		if _, err := Ask(ctx, c, FilesMissing, MissingFiles{OwnerFiles: OwnerFiles{Owner: owner}}); err != nil {
			return false, err
		}
	}
	return c.IsHere(), nil
}

// Close ends what this program does for requests.
func (c *Client) Close() {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.server != nil {
		c.server.Close()
	}
}

// openHere returns what handles requests in this program.
func (c *Client) openHere(ctx context.Context) (*Server, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.server == nil {
		s, err := c.here.open(ctx)
		if err != nil {
			return nil, err
		}
		c.server = s
	}
	return c.server, nil
}

// handleHere handles a request in this program.
func handleHere[Q, A any](ctx context.Context, c *Client, e Endpoint[Q, A], q Q) (a A, err error) {
	s, err := c.openHere(ctx)
	if err != nil {
		return a, err
	}
	if a, err = e.handle(s, ctx, q); err != nil {
		return a, errorOf(err)
	}
	if !e.Audit {
		return a, nil
	}
	data, err := encodeJSON(q)
	if err == nil {
		err = record(ctx, s, change{action: e.Name, request: data, claims: c.claims, answer: a})
	}
	if err != nil && !errors.Is(err, audit.ErrNoStream) { // processes of an earlier release create none
		c.here.Warn(err)
	}
	return a, nil
}

// open opens a Server that answers nobody.
func (h *Here) open(ctx context.Context) (*Server, error) {
	r := h.Remote
	cfg := Config{Prefix: string(r.Subjects), Audit: audit.New(r.JS, r.Subjects), Process: inCommand{open: h.OpenChecker},
		Log: zerolog.Nop()}
	var err error
	if cfg.Node, err = os.Hostname(); err != nil {
		return nil, err
	}
	if cfg.Workers, err = r.Workers(ctx); err != nil {
		return nil, err
	}
	if cfg.Policies, err = r.Policies(ctx); err != nil {
		return nil, err
	}
	if cfg.Secrets, err = r.Secrets(ctx); err != nil {
		return nil, err
	}
	s := newServer(context.WithoutCancel(ctx), r.NC, r.JS, cfg, h)
	s.handlers = s.newHandlers(rand.Text(), h)
	return s, nil
}

// inCommand is the Process of a command. It has no workers: endpoints that need more than this are not handled here.
type inCommand struct {
	Process
	open func(log func(events.LogLine)) Checker
}

func (c inCommand) OpenChecker(log func(events.LogLine)) Checker { return c.open(log) }

// AdmitLetter admits every letter: limits of calls are those of a process.
func (inCommand) AdmitLetter(string, int) *events.Failure { return nil }

func (h *Here) keys(ctx context.Context, owner string, _ func(int) error) (*bindings.Data, error) {
	return h.Remote.Data(ctx, owner, h.KVBytes)
}

func (h *Here) objects(ctx context.Context, owner string, _ func(int) error) (*bindings.ObjectData, error) {
	return h.Remote.Objects(ctx, owner)
}

// infoWait is how long a command waits to hear from NATS who it is.
const infoWait = time.Second

// natsUser is the user and account of a connection, as the server tells. It is "" if the server does not.
func natsUser(ctx context.Context, nc *nats.Conn) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), infoWait)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	var info struct {
		Data struct{ User, Account string }
	}
	if err != nil || json.Unmarshal(m.Data, &info) != nil || info.Data.User == "" {
		return ""
	}
	return info.Data.User + " of " + info.Data.Account
}

// Record records a change that a command made without an endpoint, because no process can do it.
func (h *Here) Record(ctx context.Context, action, owner, claims string, request any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	return audit.New(h.Remote.JS, h.Remote.Subjects).Write(ctx, audit.Record{
		Source: audit.Command, Owner: owner, Action: action, Request: audit.Request(data), Node: host,
		User: natsUser(ctx, h.Remote.NC), Claims: claims,
	})
}
