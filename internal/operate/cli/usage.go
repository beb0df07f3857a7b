package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	used "github.com/pinwheel-run/pinwheel/internal/operate/usage"
)

func newUsageCommand(e *env) *cobra.Command {
	r := control.AskUsage{By: []string{"owner", "worker"}}
	var month, since string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "usage [OWNER | OWNER/WORKER]", Short: "Sum up what workers used", Args: cobra.MaximumNArgs(1),
		Long: "Sums up attempts, CPU time, time, bytes of bodies, and what is stored in KV, objects and caches (in GiB hours), in UTC.\n" +
			"It is kept by the hour for 35 days, and by the day for 400. A process that is killed loses what it counted in its last\n" +
			"ten seconds. Without --month and --since it is this month.",
		Example: "  pinwheel usage --month 2026-11 --by owner --json",
	}, func(ctx context.Context, args []string) error {
		r.Owner, r.Worker = e.ownerOrWorker(args)
		from, to, err := usageSpan(month, since, time.Now().UTC())
		if err != nil {
			return err
		}
		r.From, r.To = from.Format(time.RFC3339), to.Format(time.RFC3339)
		if _, err := r.Parse(); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "TIME", "OWNER", "WORKER", "ATTEMPTS", "CPU", "TIME RUN", "IN", "OUT", "STORED")
			return printPages(p, usageCells, func(limit int) ([]used.Row, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.UsageGet, r)
				r.After = page.Next
				return page.Rows, page.Next != 0, err
			})
		})
	})
	f := c.Flags()
	f.StringVar(&month, "month", "", "`YYYY-MM`, in UTC; without a value this month")
	f.Lookup("month").NoOptDefVal = "now"
	f.StringVar(&since, "since", "", "from that time on, in place of a month: RFC 3339, or a duration like 48h before now")
	f.StringSliceVar(&r.By, "by", r.By, "a row for each of these: "+strings.Join(control.UsageBy, ", "))
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// usageSpan is the time that the flags name.
func usageSpan(month, since string, now time.Time) (from, to time.Time, err error) {
	to = now.Truncate(time.Hour).Add(time.Hour)
	switch {
	case month != "" && since != "":
		return from, to, usage("--month and --since exclude each other")
	case since != "":
		if d, failed := time.ParseDuration(since); failed == nil && d > 0 {
			return now.Add(-d), to, nil
		}
		if from, err = time.Parse(time.RFC3339, since); err != nil {
			err = usage("--since %q: it is a duration like 48h, or a time in RFC 3339", since)
		}
		return from, to, err
	case month == "" || month == "now":
		month = now.Format("2006-01")
	}
	if from, err = time.Parse("2006-01", month); err != nil {
		return from, to, usage("--month %q: it is YYYY-MM", month)
	}
	return from, from.AddDate(0, 1, 0), nil
}

func usageCells(r used.Row) []any {
	at := "-"
	if !r.Time.IsZero() {
		at = r.Time.Format("2006-01-02 15:04")
	}
	span := func(micros uint64) string { return (time.Duration(micros) * time.Microsecond).String() }
	return []any{at, cmp.Or(r.Owner, "-"), cmp.Or(r.Worker, "-"), r.Attempts, span(r.CPUMicros), span(r.WallMicros),
		r.BytesIn, r.BytesOut, fmt.Sprintf("%.3f GiBh", r.StoredByteHours/(1<<30))}
}
