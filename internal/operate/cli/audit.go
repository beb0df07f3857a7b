package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

func newAuditCommand(e *env) *cobra.Command {
	var r control.ListAudit
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "audit [OWNER]", Short: "List what was changed, by whom and from where, the oldest first", Args: cobra.MaximumNArgs(1),
		Long: "Lists changes of the last 90 days: deploys, replays and edits of dead letters, pauses of schedules, policies, drains. WHO is the owner for\n" +
			"a request to the owner API, the NATS user for a command that no process answered, and the fleet for what a process did by itself. What stands in quotes is what the sender says of itself. Nothing checks it.\n",
		Example: "  pinwheel audit acme --since 24h",
	}, func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			r.Owner = args[0]
		}
		if _, err := r.Parse(); err != nil {
			return usage("%w", err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "TIME", "OWNER", "ACTION", "WHO", "FROM", "REQUEST")
			return printPages(p, changeCells, func(limit int) ([]*audit.Record, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.AuditRecords, r)
				r.After = page.Next
				return page.Changes, page.Next != 0, err
			})
		})
	})
	c.Flags().StringVar(&r.Since, "since", "", "only what was changed at this time or later: RFC 3339, or a duration like 2h before now")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func changeCells(r *audit.Record) []any {
	from := r.Source
	if from == audit.OwnerAPI {
		from = "owner-api"
	}
	return []any{stamped(r.Time), cmp.Or(r.Owner, "-"), brief(r.Action), who(r), brief(from + " " + r.Node),
		brief(string(r.Request))}
}

// who describes who made a change. What only the sender says is in quotes.
func who(r *audit.Record) string {
	by := r.User
	switch r.Source {
	case audit.OwnerAPI:
		by = "owner " + r.Owner
	case audit.Process:
		by = "the fleet"
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
