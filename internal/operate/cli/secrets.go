package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// secretCommands are the commands about secrets.
type secretCommands struct{ *env }

func (e secretCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "secrets", Short: "Set the secrets of workers",
		Long: "Sets the secrets that workers name in their manifests (\"secrets\": [\"STRIPE_KEY\"]). A value is encrypted here, with age, to the\n" +
			"public key of the fleet. Only processes that have PINWHEEL_SECRETS_KEY decrypt it. Nothing prints a value.",
		Example: "  pinwheel secrets set acme/shop STRIPE_KEY < key.txt\n  pinwheel secrets ls acme",
	}, e.set(), e.ls(), e.rm(), e.rotate(), e.keygen())
}

// secretName parses OWNER[/WORKER] NAME.
func secretName(scope, name string) (secrets.Name, error) {
	n := secrets.Name{Name: name}
	var both bool
	if n.Owner, n.Worker, both = strings.Cut(scope, "/"); both && n.Worker == "" {
		return n, usage("%s: write OWNER/WORKER, or OWNER for all of the owner's workers", scope)
	}
	if err := n.Validate(); err != nil {
		return n, usage("%w", err)
	}
	return n, nil
}

func (e secretCommands) set() *cobra.Command {
	var recipients []string
	asJSON := false
	c := e.command(cobra.Command{
		Use: "set OWNER[/WORKER] NAME", Short: "Set a secret of a worker, or of all of an owner's workers", Args: cobra.ExactArgs(2),
		Long: "Reads the value from standard input, without the end of its last line, or asks for it on a terminal. It is no argument,\n" +
			"because other users of the machine see those. Running workers get the new value within moments, in new contexts;\n" +
			"events that run now keep the old one.\n\n" +
			"The fleet's processes tell their public key. --recipient names it instead, if you know it from elsewhere.",
		Example: "  pinwheel secrets set acme/shop STRIPE_KEY < key.txt\n  pass show stripe | pinwheel secrets set acme/shop STRIPE_KEY",
	}, func(ctx context.Context, args []string) error {
		n, err := secretName(args[0], args[1])
		if err != nil {
			return err
		}
		for _, r := range recipients {
			if !secrets.ValidRecipient(r) {
				return usage("--recipient %q: it is the public key of an age identity, age1…", r)
			}
		}
		value, err := e.value(n)
		if err != nil {
			return err
		}
		return e.store(ctx, n, value, recipients, asJSON)
	})
	c.Flags().StringArrayVar(&recipients, "recipient", nil, "age `RECIPIENT` to encrypt to, in place of the fleet's; may be repeated")
	jsonFlag(c, &asJSON)
	return c
}

func (e secretCommands) store(ctx context.Context, n secrets.Name, value secrets.Value, recipients []string,
	asJSON bool) error {
	return e.withFleet(ctx, func(c *control.Client) (err error) {
		if len(recipients) == 0 {
			if recipients, err = e.recipients(ctx, c); err != nil {
				return err
			}
		}
		sealed, err := secrets.Seal(n, value, recipients...)
		if err != nil {
			return err
		}
		if _, err := control.Ask(ctx, c, control.SecretsSet, control.SetSecret{Name: n, Sealed: sealed}); err != nil {
			return err
		}
		return e.tell(asJSON, map[string]any{"of": n.Scope(), "name": n.Name, "recipients": recipients},
			"%s is set, encrypted to %s", n, strings.Join(recipients, ", "))
	})
}

// recipients returns the recipients that the processes of the fleet encrypt to: more than one while a rotation is
// under way.
func (e secretCommands) recipients(ctx context.Context, c *control.Client) (recipients []string, err error) {
	keys, missing, err := c.SecretKeys(ctx)
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("no process of the fleet tells its public key: start one with PINWHEEL_SECRETS_KEY, or name the key with --recipient")
	}
	if err != nil {
		return nil, err
	}
	without := make([]string, 0, len(missing))
	for _, m := range missing {
		without = append(without, m.Node)
	}
	for _, k := range keys {
		if len(k.Recipients) == 0 {
			without = append(without, k.Node)
		} else if !slices.Contains(recipients, k.Recipients[0]) {
			recipients = append(recipients, k.Recipients[0])
		}
	}
	if len(recipients) == 0 {
		return nil, errors.New("no process of the fleet has a key: make one with 'pinwheel secrets keygen FILE', and start the processes with PINWHEEL_SECRETS_KEY=FILE")
	}
	if len(without) > 0 {
		fmt.Fprintf(e.Err, "warning: processes that have no PINWHEEL_SECRETS_KEY, or do not tell: %s\n", strings.Join(without, ", "))
	}
	return recipients, nil
}

func (e secretCommands) ls() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER[/WORKER]", Short: "List secrets, without their values", Args: cobra.ExactArgs(1),
		Example: "  pinwheel secrets ls acme",
		Long: "Lists the secrets of an owner, or of one of its workers: names, when they were set, and which keys of the answering process\n" +
			"open them. No command shows a value.",
	}, func(ctx context.Context, args []string) error {
		owner, worker, _ := strings.Cut(args[0], "/")
		if _, err := secretName(args[0], "X"); err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.list(ctx, c, owner, worker, asJSON) })
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func (e secretCommands) list(ctx context.Context, c *control.Client, owner, worker string, asJSON bool) error {
	p := e.List(asJSON, "OF", "NAME", "SET", "OPENED BY")
	r := control.ListSecrets{OwnerName: control.OwnerName{Owner: owner}, Worker: worker}
	err := everyPage(0, func(limit int) (int, bool, error) {
		r.Limit = min(limit, 200)
		page, err := control.Ask(ctx, c, control.SecretsList, r)
		for _, s := range page.Secrets {
			by := strings.Join(s.Recipients, ", ")
			if s.Problem != "" {
				by = "nothing here: " + s.Problem
			}
			err = cmp.Or(err, p.Add(s, s.Scope(), s.Name.Name, stamped(s.Set), cmp.Or(by, "-")))
		}
		r.After = page.Next
		return len(page.Secrets), page.Next != "", err
	})
	if c.IsHere() {
		fmt.Fprintln(e.Err, "warning: no process of the fleet runs, so no process has checked that it can open these")
	}
	return errors.Join(err, p.End())
}

func (e secretCommands) rm() *cobra.Command {
	var force, asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER[/WORKER] NAME", Short: "Remove a secret", Args: cobra.ExactArgs(2),
		Example: "  pinwheel secrets rm acme/shop STRIPE_KEY",
		Long: "Removes a secret. When the active version of a worker names it and would be without it, that is refused. With --force\n" +
			"the events of such a worker fail from then on, and run again as its retries say.",
	}, func(ctx context.Context, args []string) error {
		n, err := secretName(args[0], args[1])
		if err != nil {
			return err
		}
		return e.remove(ctx, n, force, asJSON)
	})
	c.Flags().BoolVar(&force, "force", false, "also when workers name it")
	jsonFlag(c, &asJSON)
	return c
}

func (e secretCommands) remove(ctx context.Context, n secrets.Name, force, asJSON bool) error {
	return e.withFleet(ctx, func(c *control.Client) error {
		_, err := control.Ask(ctx, c, control.SecretsRemove, control.SecretName{Name: n, Force: force})
		var refused *control.Error
		switch {
		case errors.As(err, &refused) && refused.Code == http.StatusConflict:
			return fmt.Errorf("%w; --force removes it", err)
		case err != nil:
			return err
		}
		return e.tell(asJSON, map[string]any{"of": n.Scope(), "name": n.Name}, "%s is removed", n)
	})
}

func (e secretCommands) keygen() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "keygen FILE", Short: "Make a key that decrypts secrets", Args: cobra.ExactArgs(1),
		Example: "  pinwheel secrets keygen secrets.key",
		Long: "Makes an age identity, writes it to a new file that only you may read, and prints its public key. Start all processes of the\n" +
			"fleet with PINWHEEL_SECRETS_KEY=FILE. Keep a copy elsewhere: without it, all secrets must be set again.",
		RunE: func(_ *cobra.Command, args []string) error {
			recipient, err := secrets.Create(args[0])
			if err != nil {
				return err
			}
			return e.tell(asJSON, map[string]string{"file": args[0], "recipient": recipient}, "public key: %s", recipient)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// value reads the value of a secret from standard input, and asks for it if that is a terminal.
func (e secretCommands) value(n secrets.Name) (secrets.Value, error) {
	text, err := e.Typed(fmt.Sprintf("value of %s: ", n))
	if err == nil && text == nil {
		text, err = io.ReadAll(io.LimitReader(e.In, secrets.MaxValue+3))
	}
	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}
	value := secrets.Value(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
	if err := value.Validate(); err != nil {
		return "", usage("%w", err)
	}
	return value, nil
}
