package control

import (
	"context"
	"time"
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
	return askEach[SecretKeys](ctx, c, "secrets.keys", None{}, keysWait)
}

func (k SecretKeys) from() (self Member, known []Member, left []string) {
	return k.Member, k.Processes, k.Left
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
