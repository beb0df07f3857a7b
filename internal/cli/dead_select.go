package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// selection is the flags that choose dead letters.
type selection struct {
	owner, worker, kind, reason, since, until, match, replays string

	limit       int
	after       uint64
	all, dryRun bool
}

func (s *selection) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.owner, "owner", "", "only of this owner")
	f.StringVar(&s.worker, "worker", "", "only of workers of this name, or of OWNER/WORKER")
	f.StringVar(&s.kind, "kind", "", "only events of this kind: fetch, task, scheduled or unknown")
	f.StringVar(&s.reason, "reason", "", "only those that failed for this reason")
	f.StringVar(&s.since, "since", "", "only those that failed at this time or later: RFC 3339, or a duration like 2h before now")
	f.StringVar(&s.until, "until", "", "only those that failed before this time: likewise")
	f.StringVar(&s.match, "match", "", "only those whose message this `REGEXP` matches")
	f.StringVar(&s.replays, "replays", "", "only those that were replayed so often: N, N-M, N- or -M")
	f.Uint64Var(&s.after, "after", 0, "only those with a greater `ID`")
	f.IntVar(&s.limit, "limit", 0, "at most so many; 0 is no limit")
}

func (s *selection) actionFlags(c *cobra.Command) {
	c.Flags().BoolVar(&s.all, "all", false, "all of them")
	c.Flags().BoolVar(&s.dryRun, "dry-run", false, "only print which they are")
}

// nobody stands for owners and workers whose names are not valid.
const nobody = "~"

// filter reads the flags. Its error is one of usage.
func (s *selection) filter() (consumer.Filter, error) {
	if err := splitWorker(&s.owner, &s.worker); err != nil {
		return consumer.Filter{}, err
	}
	f := consumer.Filter{Owner: s.owner, Worker: s.worker, Kind: s.kind, Limit: s.limit, After: s.after}
	for what, name := range map[string]string{"owner": s.owner, "worker": s.worker} {
		if name != "" && name != nobody && !events.ValidName(name) {
			return f, usage("--%w", events.CheckName(what, name))
		}
	}
	if _, err := events.ParseKind(s.kind); s.kind != "" && s.kind != "unknown" && err != nil {
		return f, usage("--kind %q: it is one of fetch, task, scheduled, unknown", s.kind)
	}
	if s.reason != "" {
		var err error
		if f.Reason, err = events.ParseReason(s.reason); err != nil {
			return f, usage("--%w", err)
		}
	}
	if s.limit < 0 {
		return f, usage("--limit is %d: it is 0 or more", s.limit)
	}
	now := time.Now()
	for _, bound := range []struct {
		flag, value string
		into        *time.Time
	}{{"--since", s.since, &f.Since}, {"--until", s.until, &f.Until}} {
		var ok bool
		if bound.value == "" {
			continue
		}
		if *bound.into, ok = parseSince(bound.value, now); !ok {
			return f, usage("%s %q: it is a duration like 90m, or a time in RFC 3339 like 2026-01-02T15:04:05Z", bound.flag, bound.value)
		}
	}
	if s.match != "" {
		var err error
		if f.Text, err = regexp.Compile(s.match); err != nil {
			return f, usage("--match %q: %w", s.match, err)
		}
	}
	var ok bool
	if f.MinReplays, f.MaxReplays, ok = parseReplays(s.replays); !ok {
		return f, usage("--replays %q: it is N, N-M, N- or -M", s.replays)
	}
	return f, nil
}

// parseReplays reads a number or a range as Filter has them; "" is any.
func parseReplays(s string) (least, most int, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	if from == "" && to == "" {
		return 0, 0, false
	}
	least, err := strconv.Atoi(cmp.Or(from, "0"))
	if err != nil {
		return 0, 0, false
	}
	if to == "" {
		return least, 0, true
	}
	if most, err = strconv.Atoi(to); err != nil || most < least {
		return 0, 0, false
	}
	if most == 0 {
		most = consumer.Never
	}
	return least, most, true
}

// narrow reports whether the flags choose at all.
func (s *selection) narrow() bool {
	return cmp.Or(s.owner, s.worker, s.kind, s.reason, s.since, s.until, s.match, s.replays) != "" || s.after != 0
}

// selected reads the arguments of a command that acts on what it selects: ids, or else a filter.
func (s *selection) selected(args []string) (sel consumer.Selection, err error) {
	if sel.Filter, err = s.filter(); err != nil {
		return sel, err
	}
	switch {
	case len(args) > 0 && (s.narrow() || s.all || s.limit != 0):
		return sel, usage("ids, or flags that choose: not both")
	case s.all && s.narrow():
		return sel, usage("--all, or flags that choose: not both")
	case len(args) == 0 && !s.all && !s.narrow():
		return sel, usage("which dead letters? Name ids, choose by flags like --owner, or say --all")
	case len(args) == 0:
		return sel, nil
	}
	ids, err := letterIDs(args)
	slices.Sort(ids)
	sel.IDs = slices.Compact(ids)
	return sel, err
}

func parseSince(s string, now time.Time) (time.Time, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), d >= 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// parseRate reads "N/s" or "N"; "" is 0, no limit.
func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(s, "/s"), 64)
	if err != nil || !(rate > 0 && rate <= 1e6) { // this way round for NaN
		return 0, usage("--rate %q: it is a number a second, like 10/s", s)
	}
	return rate, nil
}
