// A NATS auth callout service for owners of Pinwheel. A client with an owner's token may do what that owner may do, and
// no more. deploy/nats/callout.conf is the configuration of the server.
//
//	CALLOUT_PASSWORD=… CALLOUT_SEED=SA… go run ./examples/authcallout nats://127.0.0.1:4222 tokens.json
//
// tokens.json maps the SHA-256 of each token, in hexadecimal, to its owner: {"9f86d0…": "acme"}. Clients connect with
// the token, and with the owner's inboxes: nats.CustomInboxPrefix("_INBOX.acme").
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	subject = "$SYS.REQ.USER.AUTH"
	account = "PINWHEEL" // account of the owners
	// validFor is how long a connection lasts. If you remove a token, its connections end after at most this time.
	validFor = time.Hour
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "authcallout:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return errors.New("usage: authcallout NATS_URL TOKENS_FILE")
	}
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	s, err := newService(os.Getenv("CALLOUT_SEED"), text)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(os.Args[1], nats.UserInfo("callout", os.Getenv("CALLOUT_PASSWORD")), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := s.serve(nc); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	<-ctx.Done()
	return nc.Drain()
}

// service knows the owners.
type service struct {
	issuer nkeys.KeyPair
	owners map[string]string // by the SHA-256 of their tokens
}

func newService(seed string, tokens []byte) (*service, error) {
	issuer, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("CALLOUT_SEED: %w", err)
	}
	s := &service{issuer: issuer}
	if err := json.Unmarshal(tokens, &s.owners); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	for _, owner := range s.owners {
		if err := events.CheckName("owner", owner); err != nil {
			return nil, fmt.Errorf("tokens: %w", err) // a * would match every owner
		}
	}
	return s, nil
}

// serve answers requests until the connection is closed. Several instances may run at once: each request goes to one of
// them.
func (s *service) serve(nc *nats.Conn) error {
	_, err := nc.QueueSubscribe(subject, "authcallout", func(m *nats.Msg) {
		answer, err := s.answer(string(m.Data))
		if err != nil {
			fmt.Fprintln(os.Stderr, "authcallout:", err) // no answer, which is a refusal
			return
		}
		_ = m.Respond([]byte(answer)) // it fails when the connection is closed: the client tries again
	})
	if err != nil {
		return err
	}
	return nc.Flush()
}

// answer returns the signed answer to a server's request.
func (s *service) answer(question string) (string, error) {
	q, err := jwt.DecodeAuthorizationRequestClaims(question)
	if err != nil {
		return "", err
	}
	a := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	a.Audience = q.Server.ID
	hash := sha256.Sum256([]byte(q.ConnectOptions.Token))
	owner, known := s.owners[hex.EncodeToString(hash[:])]
	if !known {
		a.Error = "unknown token"
	} else if a.Jwt, err = s.user(q.UserNkey, owner); err != nil {
		return "", err
	}
	return a.Encode(s.issuer)
}

// user returns the permissions of a client of owner, the same as in deploy/nats/users.conf. For hostile owners leave
// pinwheel.events out (docs/guides/security.md, "Hostile owners").
func (s *service) user(nkey, owner string) (string, error) {
	u := jwt.NewUserClaims(nkey)
	u.Name, u.Audience, u.Expires = owner, account, time.Now().Add(validFor).Unix()
	u.Pub.Allow.Add("pinwheel.events.*."+owner+".*", "pinwheel.call.*."+owner+".*", "pinwheel.body."+owner+".*.*",
		"pinwheel.credit."+owner+".*.*", "pinwheel.cancel."+owner+".*", "pinwheel.unschedule."+owner+".*",
		"pinwheel.owner."+owner+".>")
	u.Sub.Allow.Add("_INBOX."+owner+".>", "pinwheel.logs."+owner+".*", "pinwheel.feed."+owner+".*")
	return u.Encode(s.issuer)
}
