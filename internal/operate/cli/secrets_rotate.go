package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

func (e secretCommands) rotate() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "rotate", Short: "Encrypt all secrets to the fleet's newest key", Args: cobra.NoArgs,
		Example: "  pinwheel secrets rotate",
		Long: "Has a process of the fleet encrypt the secrets of all owners again, to the first identity in its PINWHEEL_SECRETS_KEY. Every\n" +
			"process must have that identity, and encrypt to it. Afterwards the other identities are not needed any more.\n\n" +
			"It needs PINWHEEL_CONTROL_TOKEN, as other guarded control endpoints do. Values do not change.",
	}, func(ctx context.Context, _ []string) error {
		if err := e.refuseOwner("this command"); err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			id, err := e.rotator(ctx, c)
			if err != nil {
				return err
			}
			return e.rotateAll(ctx, c, id, asJSON)
		})
	})
	jsonFlag(c, &asJSON)
	return c
}

// rotator returns the process that is to encrypt again. All processes must agree on the key: one that did not have it
// would lose every secret.
func (e secretCommands) rotator(ctx context.Context, c *control.Client) (id string, err error) {
	keys, missing, err := c.SecretKeys(ctx)
	if err != nil {
		return "", fmt.Errorf("no process of the fleet tells its public key: %w", err)
	}
	var odd []string
	var to *control.SecretKeys
	for _, m := range missing {
		odd = append(odd, m.Node+" does not tell its keys")
	}
	for i, k := range keys {
		switch {
		case len(k.Recipients) == 0:
			odd = append(odd, k.Node+" has no PINWHEEL_SECRETS_KEY")
		case to == nil:
			to = &keys[i]
		case k.Recipients[0] != to.Recipients[0]:
			odd = append(odd, fmt.Sprintf("%s encrypts to %s, and %s to %s", k.Node, k.Recipients[0], to.Node, to.Recipients[0]))
		}
	}
	if len(odd) > 0 {
		return "", fmt.Errorf("the processes do not encrypt to the same key: %s; start all with the new identity as the first in PINWHEEL_SECRETS_KEY", strings.Join(odd, ", "))
	}
	return to.ID, nil
}

// mostRounds bounds how often a rotation is asked for. Each request works for seconds.
const mostRounds = 1000

func (e secretCommands) rotateAll(ctx context.Context, client *control.Client, id string, asJSON bool) error {
	rotated := 0
	for range mostRounds {
		var r control.Rotated
		err := e.During(fmt.Sprintf("encrypts again, %d so far", rotated), func() (err error) {
			r, err = rotateOnce(ctx, client, id)
			return err
		})
		if err != nil {
			return err
		}
		if rotated += r.Rotated; r.More {
			continue
		}
		r.Rotated = rotated
		if err := e.tell(asJSON, r, "%d secrets encrypted again to %s, %d were already", rotated, r.Recipient,
			r.Already); err != nil {
			return err
		}
		if len(r.Failed) > 0 {
			return errors.New("these could not be opened, and stay as they are: " + strings.Join(r.Failed, "; "))
		}
		return nil
	}
	return errors.New("the rotation does not end: secrets are set all the time")
}

// controlTimeout limits a control request of a command: only the named process answers, and it may be gone.
const controlTimeout = 30 * time.Second

func rotateOnce(ctx context.Context, client *control.Client, id string) (control.Rotated, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return control.Ask(ctx, client, control.SecretsRotate, control.Rotate{ID: id})
}
