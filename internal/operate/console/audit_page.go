package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// auditPage is the data of the page Audit.
type auditPage struct {
	Changes []changed // of this page, the newest first
	List    listing
	Cut     bool // there are newer ones that were not read
}

// Deeds are the changes that one can ask for, by the words for them.
func (auditPage) Deeds() []pair {
	list := make([]pair, 0, len(verbs))
	for action, words := range verbs {
		list = append(list, pair{action, words})
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// maxChangePages is how many answers the page reads: the fleet tells the oldest first.
const maxChangePages = 20

func listAudit(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	l, err := in.listing()
	p, r := auditPage{List: l}, control.ListAudit{Owner: in.arg("owner"), Since: cmp.Or(in.arg("since"), "24h"),
		Limit: 1000}
	show := func(err error) (*page, error) {
		return &page{view: "audit", title: "Audit", place: "audit", data: p}, err
	}
	var all []*audit.Record
	for n := 0; err == nil && n < maxChangePages; n++ {
		list, failed := control.Ask(ctx, fleet, control.AuditRecords, r)
		if failed != nil {
			return show(failed)
		}
		all = append(all, list.Changes...)
		if r.After = list.Next; r.After == 0 {
			break
		}
	}
	if what := in.arg("what"); what != "" {
		all = slices.DeleteFunc(all, func(r *audit.Record) bool { return r.Action != what })
	}
	slices.Reverse(all)
	p.List.Total, p.Cut = len(all), r.After != 0
	for _, one := range all[min(l.Skip(), len(all)):min(l.Skip()+pageSize, len(all))] {
		p.Changes = append(p.Changes, changed{one})
	}
	return show(err)
}

// changed is a record as people read it: who did what to what.
type changed struct{ *audit.Record }

// verbs say what actions do, as words between who and what.
var verbs = map[string]string{
	"versions.deploy": "deployed", "versions.preview": "made a preview link of", "workers.rm": "removed",
	"workers.reset": "reset", "deployments.promote": "promoted a version of", "deployments.rollback": "rolled back",
	"deployments.alias": "set an alias of", "owners.set": "set the policy of", "owners.rm": "removed the policy of",
	"secrets.set": "set a secret of", "secrets.rm": "removed a secret of", "secrets.rotate": "rotated the secrets of",
	"events.send": "sent a test event to", "events.cancel": "cancelled events of",
	"events.purge": "purged events of", "drain": "drained", "cells.end": "ended a cell of",
	"schedules.cancel": "cancelled waiting events of", "schedules.pause": "paused a schedule of",
	"schedules.resume": "resumed a schedule of", "pause": "paused", "resume": "resumed",
	"sources.reset": "reset sources of", "dead.import": "imported dead letters of",
	"dead.edit": "edited a dead letter of", "dead.replay": "replayed dead letters of",
	"dead.purge": "removed dead letters of", "kv.put": "wrote a key of", "kv.rm": "removed a key of",
	"objects.put": "wrote an object of", "objects.rm": "removed an object of",
}

// Did is what was done, in words.
func (c changed) Did() string { return cmp.Or(verbs[c.Action], c.Action) }

// Who is who did it, as far as somebody vouches for it: NATS, or the owner API. Says is what the sender says of itself.
func (c changed) Who() string {
	switch c.Source {
	case audit.OwnerAPI:
		return "owner " + c.Owner
	case audit.Process:
		return "process " + c.Node
	}
	return c.User
}

// Says is the name that the sender gives itself. Nothing checks it.
func (c changed) Says() string {
	if name, ok := strings.CutPrefix(c.Claims, "console: "); ok {
		return name
	}
	return c.Claims
}

// From is the way by which it came.
func (c changed) From() string {
	switch {
	case c.Claims == "console" || strings.HasPrefix(c.Claims, "console: "):
		return "console"
	case c.Source == audit.OwnerAPI:
		return "owner API"
	case c.Source == audit.Command:
		return "command"
	case c.Source == audit.Process:
		return "fleet"
	}
	return "control endpoint"
}

// request has the fields of the request.
func (c changed) request() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(c.Request, &fields) // what is no object has no fields
	return fields
}

// text is a field of the request: a text as it is, and other values as JSON.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	var list []string
	if json.Unmarshal(value, &list) == nil {
		return strings.Join(list, ", ")
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// Worker is the worker that the request names, without its owner; "": it names none.
func (c changed) Worker() string {
	w := text(c.request()["worker"])
	if _, name, ok := strings.Cut(w, "/"); ok {
		return name
	}
	return w
}

// notable are the fields of a request that say most of it, and the words before their values.
var notable = []pair{
	{"name", ""}, {"alias", ""}, {"version", "version "}, {"percent", "at "}, {"id", ""}, {"ids", "ids "},
	{"bucket", "in "}, {"key", ""}, {"reason", "reason "}, {"kind", "kind "}, {"match", "matching "}, {"since", "since "},
	{"node", ""}, {"message", "because: "}, {"cell", "cell "}, {"owners", "owners "},
	{"sent", "because of what it sent: "},
}

// Brief is what the request names beside owner and worker, in a line.
func (c changed) Brief() string {
	fields, parts := c.request(), []string{}
	if text(fields["dryRun"]) == "true" {
		parts = append(parts, "only a check")
	}
	if text(fields["all"]) == "true" {
		parts = append(parts, "all")
	}
	for _, n := range notable {
		value := text(fields[n.Name])
		switch {
		case value == "" || value == "0" || value == "null":
		case n.Name == "percent":
			parts = append(parts, n.Value+value+" %")
		default:
			parts = append(parts, n.Value+short(60, value))
		}
	}
	return strings.Join(parts, ", ")
}

// Details are all that the record has, for who wants to know more.
func (c changed) Details() []pair {
	list := []pair{{"Action", c.Action}, {"Came by", c.Source}}
	for _, p := range []pair{{"NATS user", c.User}, {"Says it is", c.Claims}, {"Process or machine", c.Node}} {
		if p.Value != "" {
			list = append(list, p)
		}
	}
	fields := c.request()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, pair{name, text(fields[name])})
	}
	return append(list, pair{"Record", fmt.Sprint(c.Seq)})
}
