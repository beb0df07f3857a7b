package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// Client sends requests to the control endpoints of a fleet. If the fleet refuses a request, the error is an *Error.
// nats.ErrNoResponders means that no process answers. Several goroutines may use a Client.
type Client struct {
	nc     *nats.Conn
	prefix string // first part of the subjects
	token  string
	owner  string // whose API is used; "": the control endpoints
	claims string // who the sender says it is

	answerWithin time.Duration // in place of the constant, in tests

	here    *Here // handles requests that the fleet does not handle; nil: nobody does
	opening sync.Mutex
	server  *Server // of here, once it is needed
}

// NewClient returns a Client that uses nc. token is the token for guarded endpoints, and may be empty.
func NewClient(nc *nats.Conn, prefix, token string) *Client {
	return &Client{nc: nc, prefix: prefix, token: token}
}

// NewOwnerClient returns a Client that uses the owner API, with a connection of this owner's user. Requests
// reach only what is the owner's. Requests that concern no owner, as Drain, are not answered there.
func NewOwnerClient(nc *nats.Conn, prefix, owner string) *Client {
	return &Client{nc: nc, prefix: prefix, owner: owner}
}

// Claim sets what requests say of who sends them. The audit stream has it beside what is known. It must not be called
// while requests are sent.
func (c *Client) Claim(who string) { c.claims = who }

// Ask sends a request to an endpoint and returns the answer, of an each-process endpoint the first one. If ctx has no
// deadline, it waits a limited time. OrHere says when this program handles the request in place of the fleet.
func Ask[Q, A any](ctx context.Context, c *Client, e Endpoint[Q, A], q Q) (a A, err error) {
	handles := c.here != nil && !e.Each && !e.Process
	if handles && c.IsHere() {
		return handleHere(ctx, c, e, q)
	}
	if e.Retry != Once {
		a, err = askPatiently(ctx, c, e, q)
	} else {
		err = c.ask(ctx, e.Name, q, &a)
	}
	if handles && notHandled(e.Name, err) {
		return handleHere(ctx, c, e, q)
	}
	return a, err
}

// patiently makes Ask ask again while no process has room for a request that changes nothing, or one does not answer.
func patiently[Q, A any](e Endpoint[Q, A]) Endpoint[Q, A] {
	e.Retry = IfUnanswered
	return e
}

// notHandled reports whether the fleet has not begun to handle a request: no process answers, or none may handle it for
// this client.
func notHandled(name string, err error) bool {
	var refused *Error
	return errors.Is(err, nats.ErrNoResponders) || errors.As(err, &refused) && isUnauthorized(name, refused)
}

const (
	// patience is how long Ask asks again without a deadline of its context, while no process has room for a request.
	patience = time.Minute
	// answerWithin is how long Ask waits before it asks again, for endpoints with IfUnanswered: a process that is stopped
	// still gets its share of the requests.
	answerWithin = 8 * time.Second
)

// askPatiently asks again as e.Retry says, until ctx is done.
func askPatiently[Q, A any](ctx context.Context, c *Client, e Endpoint[Q, A], q Q) (a A, err error) {
	if _, limited := ctx.Deadline(); !limited {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, patience)
		defer stop()
	}
	tries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	var refused *Error // the last one
	err = backoff.Retry(func() (err error) {
		a = *new(A)
		each, stop := ctx, context.CancelFunc(func() {})
		if e.Retry == IfUnanswered {
			each, stop = context.WithTimeout(ctx, cmp.Or(c.answerWithin, answerWithin))
		}
		defer stop()
		err = c.ask(each, e.Name, q, &a)
		if each.Err() != nil && ctx.Err() == nil {
			return err
		}
		if !errors.As(err, &refused) || refused.Code != http.StatusServiceUnavailable &&
			refused.Code != http.StatusTooManyRequests {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(tries, ctx))
	if err != nil && ctx.Err() != nil && refused != nil {
		err = refused
	}
	return a, err
}

// ask sends a request to an endpoint, by its name, and decodes the first answer.
func (c *Client) ask(ctx context.Context, endpoint string, request, answer any) error {
	data, err := encodeJSON(request)
	if err != nil {
		return err
	}
	if _, limited := ctx.Deadline(); !limited { // a server that refuses the message does not answer
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, requestTimeout+requestTimeout/4)
		defer stop()
	}
	r, err := c.nc.RequestMsgWithContext(ctx, c.message(endpoint, data))
	if err != nil {
		return err
	}
	if err := refusedBy(r); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Data, answer); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", endpoint, err)
	}
	return nil
}

// message returns the message of a request.
func (c *Client) message(endpoint string, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: c.prefix + ".control." + endpoint, Data: data, Header: nats.Header{}}
	if c.owner != "" {
		m.Subject = ownerSubject(c.prefix, c.owner, endpoint)
	}
	if c.claims != "" {
		m.Header.Set(HeaderClaims, c.claims)
	}
	if c.token != "" {
		m.Header.Set("Authorization", "Bearer "+c.token)
	}
	return m
}

// refusedBy returns the *Error in an answer, or nil.
func refusedBy(answer *nats.Msg) error {
	code := answer.Header.Get(micro.ErrorCodeHeader)
	if code == "" {
		return nil
	}
	n, _ := strconv.Atoi(code)
	return &Error{Code: n, Text: answer.Header.Get(micro.ErrorHeader), Module: readModuleFault(answer.Data)}
}
