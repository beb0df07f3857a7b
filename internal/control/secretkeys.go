package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// keysWait is how long SecretKeys waits for processes that another process has named.
const keysWait = time.Second

// SecretKeys asks all processes of the fleet for their recipients. missing are processes that others know and that have
// not answered: they may be of an older release. nats.ErrNoResponders means that no process answers.
func (r *Remote) SecretKeys(ctx context.Context) (answers []SecretKeys, missing []Member, err error) {
	return NewClient(r.NC, string(r.Subjects), "").SecretKeys(ctx)
}

// SecretKeys is Remote.SecretKeys.
func (c *Client) SecretKeys(ctx context.Context) (answers []SecretKeys, missing []Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, keysWait)
	defer cancel()
	question := c.message("secrets.keys", nil)
	question.Reply = c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(question.Reply)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishMsg(question); err != nil {
		return nil, nil, err
	}
	known, gone := map[string]Member{}, map[string]bool{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, nil, err
		case err != nil && len(answers) == 0:
			return nil, nil, err
		case err != nil: // some have not answered
			for _, p := range known {
				missing = append(missing, p)
			}
			return answers, missing, nil
		}
		var keys SecretKeys
		if m.Header.Get(micro.ErrorCodeHeader) != "" || json.Unmarshal(m.Data, &keys) != nil {
			continue
		}
		for _, id := range keys.Left {
			gone[id] = true
			delete(known, id)
		}
		for _, p := range keys.Processes {
			if !gone[p.ID] {
				known[p.ID] = p
			}
		}
		answers, gone[keys.ID] = append(answers, keys), true
		if delete(known, keys.ID); len(known) == 0 {
			return answers, nil, nil
		}
	}
}

// ListSecrets lists the secrets of an owner, with what the answering process says of them.
func (c *Client) ListSecrets(ctx context.Context, r ListSecrets) (SecretList, error) {
	return asked[SecretList](ctx, c, "secrets.list", r)
}

// SetSecret stores a secret that is encrypted already.
func (c *Client) SetSecret(ctx context.Context, r SetSecret) (Secret, error) {
	return asked[Secret](ctx, c, "secrets.set", r)
}

// RemoveSecret removes a secret.
func (c *Client) RemoveSecret(ctx context.Context, r SecretName) (Secret, error) {
	return asked[Secret](ctx, c, "secrets.rm", r)
}

// RotateSecrets has the named process encrypt all secrets again.
func (c *Client) RotateSecrets(ctx context.Context, r Rotate) (Rotated, error) {
	return asked[Rotated](ctx, c, "secrets.rotate", r)
}
