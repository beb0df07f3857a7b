package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/user"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/audit"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newAuditCommand(e *env) *cobra.Command {
	var r control.ListAudit
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "audit [OWNER]", Short: "List what was changed, by whom and from where, the oldest first", Args: cobra.MaximumNArgs(1),
		Long: "Lists changes of the last 90 days: deploys, replays and edits of dead letters, pauses of schedules, policies, drains. WHO is the owner for\n" +
			"a request at an owner's door, and the NATS user for a command. What stands in quotes is what the sender says of itself. Nothing checks it.\n" +
			"Commands of the fleet's user write to JetStream, and so their records themselves.",
		Example: "  pinwheel audit acme --since 24h",
	}, func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			r.Owner = args[0]
		}
		f, err := r.Parse()
		if err != nil {
			return usage("%w", err)
		}
		if atDoor(e) {
			return withDoor(e, func(c *control.Client) error { return printAudit(e, auditAtDoor(ctx, c, r), asJSON) })
		}
		c, err := e.connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return printAudit(e, audit.New(c.JS, c.Subjects).List(ctx, f), asJSON)
	})
	c.Flags().StringVar(&r.Since, "since", "", "only what was changed at this time or later: RFC 3339, or a duration like 2h before now")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func auditAtDoor(ctx context.Context, c *control.Client, r control.ListAudit) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for {
			page, err := c.Audit(ctx, r)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, one := range page.Changes {
				if !yield(one, nil) {
					return
				}
			}
			if r.After = page.Next; r.After == 0 {
				return
			}
		}
	}
}

func printAudit(e *env, list iter.Seq2[*audit.Record, error], asJSON bool) error {
	t, enc := e.table(), json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	if !asJSON {
		fmt.Fprintln(t, "TIME\tOWNER\tACTION\tWHO\tFROM\tREQUEST")
	}
	for r, err := range list {
		if err == nil && asJSON {
			err = enc.Encode(r)
		} else if err == nil {
			owner := r.Owner
			if owner == "" {
				owner = "-"
			}
			_, err = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", stamped(r.Time), owner, brief(r.Action), who(r), brief(r.Source+" "+r.Node), brief(string(r.Request)))
		}
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// who describes who made a change. What only the sender says is in quotes.
func who(r *audit.Record) string {
	by := r.User
	if r.Source == audit.Door {
		by = "owner " + r.Owner
	}
	if r.Claims != "" {
		if by != "" {
			by += " "
		}
		by += fmt.Sprintf("%q", r.Claims)
	}
	if by == "" {
		by = "-"
	}
	return brief(by)
}

// claims is what the command says of who runs it: the user and host of the machine.
func claims() string {
	name, host := "?", "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// infoWait is how long the command waits to hear from NATS who it is.
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

// record writes to the audit stream what a command has changed in JetStream itself. request is what it was told to do.
// The change is done: if it cannot be recorded, the command says so.
func record(ctx context.Context, e *env, action, owner string, request any) {
	if e.remote == nil {
		return
	}
	data, err := json.Marshal(request)
	if err == nil {
		host, _ := os.Hostname()
		err = audit.New(e.remote.JS, e.remote.Subjects).Write(ctx, audit.Record{
			Source: audit.Command, Owner: owner, Action: action, Request: audit.Request(data), Node: host, User: natsUser(ctx, e.remote.NC), Claims: claims(),
		})
	}
	if err != nil && !errors.Is(err, audit.ErrNoStream) { // processes of an earlier release create none
		fmt.Fprintln(e.err, "pinwheel: the change is done, and not recorded:", err)
	}
}
