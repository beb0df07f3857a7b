package control

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// Nameless stands for owners and workers whose names are not valid.
const Nameless = "~"

// maxText is the longest Text of a Filter, in bytes.
const maxText = 1000

// Filter chooses dead letters. Empty fields choose all.
type Filter struct {
	Owner   string `json:"owner,omitempty"`
	Worker  string `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	Kind    string `json:"kind,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Since   string `json:"since,omitempty"` // RFC 3339, or a duration before now
	Until   string `json:"until,omitempty"`
	Match   string `json:"match,omitempty"`   // a regular expression for the message
	Text    string `json:"text,omitempty"`    // what the message, the event ID or the body contains; a to z in either case
	Replays string `json:"replays,omitempty"` // N, N-M, N- or -M
	After   uint64 `json:"after,omitempty"`   // only greater IDs
	Limit   int    `json:"limit,omitempty"`   // 0: no limit
	asker
}

// Narrow reports whether the filter excludes any letters.
func (f Filter) Narrow() bool {
	return cmp.Or(f.Owner, f.Worker, f.Kind, f.Reason, f.Since, f.Until, f.Match, f.Text, f.Replays) != "" || f.After != 0
}

// Parse parses the fields. Its error is an *Error with the wrong field.
func (f Filter) Parse() (deadletter.Filter, error) {
	if err := SplitWorker(&f.Owner, &f.Worker); err != nil {
		return deadletter.Filter{}, err
	}
	p := deadletter.Filter{Owner: f.Owner, Worker: f.Worker, Kind: f.Kind, Text: f.Text, Limit: f.Limit, After: f.After}
	for what, name := range map[string]string{"owner": f.Owner, "worker": f.Worker} {
		if name != Nameless {
			if err := CheckName(what, name); err != nil {
				return p, err
			}
		}
	}
	if _, err := events.ParseKind(f.Kind); f.Kind != "" && f.Kind != "unknown" && err != nil {
		return p, wrongField("kind", " %q: it is one of fetch, task, scheduled, unknown", f.Kind)
	}
	if f.Reason != "" {
		var err error
		if p.Reason, err = events.ParseReason(f.Reason); err != nil {
			return p, wrongName("reason", err)
		}
	}
	if f.Limit < 0 {
		return p, wrongField("limit", " is %d: it is 0 or more", f.Limit)
	}
	if len(f.Text) > maxText {
		return p, wrongField("text", " has %d bytes: it has at most %d", len(f.Text), maxText)
	}
	return p, f.parsePatterns(&p)
}

// parsePatterns parses the fields that have a syntax of their own.
func (f Filter) parsePatterns(p *deadletter.Filter) error {
	now := time.Now()
	for _, bound := range []struct {
		field, value string
		into         *time.Time
	}{{"since", f.Since, &p.Since}, {"until", f.Until, &p.Until}} {
		var ok bool
		if bound.value == "" {
			continue
		}
		if *bound.into, ok = parseSince(bound.value, now); !ok {
			return wrongField(bound.field, " %q: it is a duration like 90m, or a time in RFC 3339 like 2026-01-02T15:04:05Z", bound.value)
		}
	}
	if f.by != "" {
		if err := tail.CheckRegexp(f.Match); err != nil { // before it is compiled
			return wrongField("match", " %v", err)
		}
	}
	if f.Match != "" {
		var err error
		if p.Match, err = regexp.Compile(f.Match); err != nil {
			return wrongField("match", " %q: %v", f.Match, err)
		}
	}
	var ok bool
	if p.MinReplays, p.MaxReplays, ok = parseReplays(f.Replays); !ok {
		return wrongField("replays", " %q: it is N, N-M, N- or -M", f.Replays)
	}
	return nil
}

// parseReplays parses a number or a range in the syntax of Filter; "" is any number.
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
		most = deadletter.Never
	}
	return least, most, true
}

func parseSince(s string, now time.Time) (time.Time, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), d >= 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// maxOwnerIDs is how many letters a request of an owner may name.
const maxOwnerIDs = 1000

// checkIDs checks how many letters a request names.
func (a asker) checkIDs(ids []uint64) error {
	if a.by != "" && len(ids) > maxOwnerIDs {
		return refused("ids has %d entries: by the owner API it has at most %d", len(ids), maxOwnerIDs)
	}
	return nil
}

// Selection chooses letters to act on: by their IDs, by a filter, or all of them.
type Selection struct {
	IDs []uint64 `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
	Filter
	DryRun bool `json:"dryRun,omitempty"`
}

// parse parses the fields. What an owner chooses, also all, is of this owner. So a request must choose before the owner
// is filled in.
func (s Selection) parse() (deadletter.Selection, error) {
	f, err := s.Filter.Parse()
	if err == nil {
		err = s.checkIDs(s.IDs)
	}
	if err != nil {
		return deadletter.Selection{}, err
	}
	narrow := s.Narrow()
	switch {
	case len(s.IDs) > 0 && (narrow || s.All || s.Limit != 0):
		return deadletter.Selection{}, refused("ids, or fields that choose: not both")
	case s.All && narrow:
		return deadletter.Selection{}, refused("all, or fields that choose: not both")
	case len(s.IDs) == 0 && !s.All && !narrow:
		return deadletter.Selection{}, refused("which dead letters? Name ids, choose by fields like owner, or say all")
	case len(s.IDs) > 0:
		return deadletter.Selection{IDs: s.IDs, Owner: s.by}, nil
	case s.by != "" && f.Owner != "" && f.Owner != s.by:
		return deadletter.Selection{}, foreign("owner", f.Owner, s.by)
	case s.by != "":
		f.Owner = s.by
	}
	return deadletter.Selection{Filter: f}, nil
}

// Edit changes letters.
type Edit struct {
	Body          *string         `json:"body,omitempty" most:"-"`
	BodyBase64    []byte          `json:"bodyBase64,omitempty"`
	Patch         json.RawMessage `json:"patch,omitempty"`                 // RFC 7396
	SetHeaders    events.Header   `json:"setHeaders,omitempty" most:"100"` // each is compared with each of a letter's
	RemoveHeaders []string        `json:"removeHeaders,omitempty" most:"100"`
}

func (r Edit) edit() (events.Edit, error) {
	e := events.Edit{Body: r.BodyBase64, Patch: r.Patch, Set: r.SetHeaders, Remove: r.RemoveHeaders}
	if r.Body != nil {
		if r.BodyBase64 != nil {
			return e, refused("body, or bodyBase64: not both")
		}
		e.Body = []byte(*r.Body)
	}
	if err := e.Validate(); err != nil {
		return e, refused("%v", err)
	}
	return e, nil
}

// Replay replays letters.
type Replay struct {
	Selection
	Edit
	Rate       float64 `json:"rate,omitempty"` // letters per second; 0: no limit
	MaxReplays int     `json:"maxReplays,omitempty"`
	Force      bool    `json:"force,omitempty"`
	To         string  `json:"to,omitempty"` // WORKER, WORKER@VERSION or @VERSION
}

// Bounds of Replay.Rate. A job that is slower would hold its place in the process without end.
const minRate, maxRate = 0.001, 1_000_000

func (r Replay) options() (o deadletter.ReplayOptions, err error) {
	o = deadletter.ReplayOptions{MaxReplays: r.MaxReplays, Force: r.Force, Rate: r.Rate, DryRun: r.DryRun}
	switch {
	case r.Rate != 0 && !(r.Rate >= minRate && r.Rate <= maxRate):
		return o, refused("rate is %g: it is a number a second, %g to %d, or 0 for no limit", r.Rate, minRate, maxRate)
	case r.MaxReplays < 0:
		return o, refused("maxReplays is %d: it is 1 or more, or 0 for %d", r.MaxReplays, deadletter.DefaultMaxReplays)
	case r.To != "":
		if o.To, err = events.ParseTo(r.To); err != nil {
			return o, refused("to: %v", err)
		}
	}
	o.Edit, err = r.edit()
	return o, err
}

// ReplayFilter chooses replays. Empty fields choose all.
type ReplayFilter struct {
	IDs    []uint64 `json:"ids,omitempty"` // IDs of the letters that were replayed
	Owner  string   `json:"owner,omitempty"`
	Worker string   `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	State  string   `json:"state,omitempty"`
	Limit  int      `json:"limit,omitempty"` // only the newest ones; 0: no limit
	asker
}

// Parse parses the fields. Its error is an *Error with the wrong field.
func (r ReplayFilter) Parse() (f deadletter.ReplayFilter, err error) {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return f, err
	}
	f = deadletter.ReplayFilter{Owner: r.Owner, Worker: r.Worker, State: deadletter.ReplayState(r.State), Limit: r.Limit}
	if err := cmp.Or(CheckName("owner", r.Owner), CheckName("worker", r.Worker)); err != nil {
		return f, err
	}
	if len(r.IDs) > 0 {
		f.Letters = r.IDs
	}
	if r.State != "" && !slices.Contains(deadletter.ReplayStates(), f.State) {
		var names []string
		for _, s := range deadletter.ReplayStates() {
			names = append(names, string(s))
		}
		return f, wrongField("state", " %q: it is one of %s", r.State, strings.Join(names, ", "))
	}
	if r.Limit < 0 {
		return f, wrongField("limit", " is %d: it is 0 or more", r.Limit)
	}
	return f, nil
}
