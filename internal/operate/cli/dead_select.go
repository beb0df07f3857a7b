package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// selection holds the flags that choose dead letters.
type selection struct{ control.Selection }

func (s *selection) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.Owner, "owner", "", "only of this owner")
	f.StringVar(&s.Worker, "worker", "", "only of workers of this name, or of OWNER/WORKER")
	f.StringVar(&s.Kind, "kind", "", "only events of this kind: fetch, task, scheduled or unknown")
	f.StringVar(&s.Reason, "reason", "", "only those that failed for this reason")
	f.StringVar(&s.Since, "since", "", "only those that failed at this time or later: RFC 3339, or a duration like 2h before now")
	f.StringVar(&s.Until, "until", "", "only those that failed before this time: likewise")
	f.StringVar(&s.Match, "match", "", "only those whose message this `REGEXP` matches")
	f.StringVar(&s.Text, "text", "", "only those whose message, event id or body contains this `TEXT`, with a to z in either case")
	f.StringVar(&s.Replays, "replays", "", "only those that were replayed so often: N, N-M, N- or -M")
	f.Uint64Var(&s.After, "after", 0, "only those with a greater `ID`")
	f.IntVar(&s.Limit, "limit", 0, "at most so many; 0 is no limit")
}

func (s *selection) actionFlags(c *cobra.Command) {
	c.Flags().BoolVar(&s.All, "all", false, "all of them")
	c.Flags().BoolVar(&s.DryRun, "dry-run", false, "only print which letters they are")
}

// selected reads the arguments of a command that acts on letters: IDs, or a filter.
func (s *selection) selected(args []string) (sel control.Selection, err error) {
	sel = s.Selection
	if _, err = s.Parse(); err != nil {
		return sel, flagError(err)
	}
	switch {
	case len(args) > 0 && (s.Narrow() || s.All || s.Limit != 0):
		return sel, usage("ids, or flags that choose: not both")
	case s.All && s.Narrow():
		return sel, usage("--all, or flags that choose: not both")
	case len(args) == 0 && !s.All && !s.Narrow():
		return sel, usage("which dead letters? Name ids, choose by flags like --owner, or say --all")
	case len(args) == 0:
		return sel, nil
	}
	ids, err := letterIDs(args)
	slices.Sort(ids)
	sel.IDs = slices.Compact(ids)
	return sel, err
}

// parseRate parses "N/s" or "N"; "" is 0, no limit.
func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(s, "/s"), 64)
	if err != nil || !(rate > 0 && rate <= 1e6) { // written so that NaN is refused
		return 0, usage("--rate %q: it is a number a second, like 10/s", s)
	}
	return rate, nil
}
