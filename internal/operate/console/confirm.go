package console

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/queue"
)

// question is the data of a page that asks before something is done. Its form does it.
type question struct {
	Title  string
	Of     string // what it is about
	Back   string // its page
	Text   string // what happens
	Facts  []pair
	Action string // path of the form
	Hidden []pair
	Fields []field
	Do     string // text of the button
	Danger bool   // it cannot be undone
}

// pair is a name with a value.
type pair struct{ Name, Value string }

// field is a field that the person may fill in.
type field struct{ Label, Name, Value, Hint string }

func (q question) page(place string) *page {
	return &page{view: "question", title: q.Title, place: place, data: q}
}

// split is how a deployment divides the events.
func split(d workers.Deployment) string {
	parts := make([]string, len(d.Split))
	for i, s := range d.Split {
		parts[i] = s.Version + " has " + percent(s.Percent)
	}
	if len(parts) == 0 {
		return "no version has any"
	}
	return strings.Join(parts, ", ")
}

// deployments are those of the worker of the address, the oldest first.
func deployments(ctx context.Context, fleet *control.Client,
	in inputs) (now workers.Deployment, all []workers.Deployment, err error) {
	list, err := control.Ask(ctx, fleet, control.DeploymentsList, in.workerName())
	if err != nil {
		return now, nil, err
	}
	if n := len(list.Deployments); n > 0 {
		now = list.Deployments[n-1]
	}
	return now, list.Deployments, nil
}

// question is one about the worker of the address.
func (in inputs) question(title, action string) question {
	name := in.workerName().Worker
	return question{Title: title, Of: name, Back: "/workers/" + name, Action: "/workers/" + name + "/" + action}
}

// askPromote asks before a version gets a share of the events.
func askPromote(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	now, _, err := deployments(ctx, fleet, in)
	if err != nil {
		return nil, err
	}
	version := in.either("version")
	if version == "" {
		return nil, wrongForm("version", "", "it names the version that gets events")
	}
	q := in.question("Promote a version?", "promote")
	q.Text = "This version gets its share of all new events of " + q.Of + " at once, in all processes."
	q.Facts = []pair{{"Version", version}, {"Events now", split(now)}}
	q.Hidden = []pair{{"version", version}}
	q.Fields = []field{{"Percent of the events", "percent", in.either("percent"), "above 0, to 100"},
		{"Why", "message", in.either("message"), "for the list of deployments"}}
	q.Do = "Promote"
	return q.page("workers"), nil
}

// askRollback asks before the version before gets everything. The form names it: what the person has seen is done.
func askRollback(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	now, all, err := deployments(ctx, fleet, in)
	if err != nil {
		return nil, err
	}
	version := in.either("version")
	if version == "" {
		version = now.BackTo(all)
	}
	if version == "" {
		return nil, &control.Error{Code: 409, Text: "no version had everything before: promote the one to go back to"}
	}
	q := in.question("Roll back?", "rollback")
	q.Text = "This version gets all new events of " + q.Of + " at once, in all processes."
	q.Facts = []pair{{"Back to", version}, {"Events now", split(now)}}
	q.Hidden = []pair{{"version", version}}
	q.Fields = []field{{"Why", "message", in.either("message"), "for the list of deployments"}}
	q.Do = "Roll back"
	return q.page("workers"), nil
}

// askReset asks before the contexts of a worker end.
func askReset(_ context.Context, _ *control.Client, in inputs) (*page, error) {
	q := in.question("Reset the worker?", "reset")
	q.Text = "All contexts of " + q.Of + " end, in all processes. What it keeps in memory is lost; its next events start cold. " +
		"Events that run come again."
	q.Do, q.Danger = "Reset", true
	return q.page("workers"), nil
}

// askRemovePolicy asks before the policy of an owner is gone.
func askRemovePolicy(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	owner := in.path("owner")
	policy, err := control.Ask(ctx, fleet, control.OwnersGet, control.OwnerName{Owner: owner})
	if err != nil {
		return nil, err
	}
	text, err := indented(policy.Policy)
	q := question{Title: "Remove the policy?", Of: owner, Back: "/owners/" + owner, Action: "/owners/" + owner + "/remove",
		Text:  "The configuration applies to " + owner + " then. What the policy grants and bounds is gone:",
		Facts: []pair{{"Policy", text}}, Do: "Remove", Danger: true}
	return q.page("owners"), err
}

// askCancelWaiting asks before events that wait are gone.
func askCancelWaiting(_ context.Context, _ *control.Client, in inputs) (*page, error) {
	worker, id := in.arg("worker"), in.arg("id")
	if worker == "" || id == "" {
		return nil, wrongForm("id", id, "worker and id name the event that waits")
	}
	q := question{Title: "Cancel the event?", Of: worker, Back: within(in.arg("back")), Action: "/schedules/cancel",
		Text:   "The event does not run. It leaves no dead letter.",
		Facts:  []pair{{"Worker", worker}, {"Event id", id}},
		Hidden: []pair{{"worker", worker}, {"id", id}, {"back", within(in.arg("back"))}},
		Do:     "Cancel the event", Danger: true}
	return q.page("schedules"), nil
}

// askCancelEvent asks before an event that waits or runs ends. The form names its place: what the person has seen ends.
func askCancelEvent(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	owner, ref := in.either("owner"), in.either("id")
	e, err := queue.Show(ctx, fleet, control.ShowEvent{Owner: owner, Worker: in.either("worker"), ID: ref})
	if err != nil {
		return nil, err
	}
	q := question{Title: "Cancel the event?", Of: owner + "/" + e.Worker,
		Back: "/queue/event?" + url.Values{"owner": {owner}, "id": {e.Ref}}.Encode(), Action: "/queue/cancel",
		Text: "The event ends and does not run again. It leaves no dead letter. If it runs, its handler gets a signal and " +
			"a quarter of a second; who waits for the reply gets the failure cancelled.",
		Facts:  []pair{{"Event id", e.ID}, {"State", e.Where()}, {"Place", e.Ref}},
		Hidden: []pair{{"owner", owner}, {"id", e.Ref}},
		Do:     "Cancel the event", Danger: true}
	return q.page("queue"), nil
}

// note is what a change says of who made it.
func (s session) note(message string) control.Note {
	by := "console"
	if s.Who != "" {
		by = s.Who + " (console)"
	}
	return control.Note{By: by, Message: message}
}

// again shows the question of a form that was refused, with what the person wrote.
func (c *call) again(ask lookup, refusal error) (*page, error) {
	if !isRefusal(refusal) {
		return nil, refusal
	}
	p, err := ask(c.ctx, c.fleet(), c.inputs)
	if err != nil {
		return nil, refusal
	}
	return p, refusal
}

func promote(c *call) (*page, error) {
	r := control.Promote{WorkerName: c.workerName(), Version: c.form("version"), Force: c.form("force") != "",
		Note: c.note(c.form("message"))}
	if text := c.form("percent"); text != "" {
		var err error
		if r.Percent, err = strconv.ParseFloat(text, 64); err != nil || !(r.Percent > 0 && r.Percent <= 100) {
			return c.again(askPromote, wrongForm("percent", text, "it is above 0, to 100"))
		}
	}
	d, err := control.Ask(c.ctx, c.fleet(), control.DeploymentsPromote, r)
	if err != nil {
		return c.again(askPromote, err)
	}
	return c.redeployed(d, "promoted")
}

func rollback(c *call) (*page, error) {
	d, err := control.Ask(c.ctx, c.fleet(), control.DeploymentsRollback, control.Rollback{WorkerName: c.workerName(),
		Version: c.form("version"), Force: c.form("force") != "", Note: c.note(c.form("message"))})
	if err != nil {
		return c.again(askRollback, err)
	}
	return c.redeployed(d, "rolled back")
}

// reset ends the contexts of a worker in all processes.
func reset(c *call) (*page, error) {
	done, err := control.Ask(c.ctx, c.fleet(), control.WorkersReset, c.workerName())
	if err != nil {
		return nil, err
	}
	if len(done.Missing) > 0 {
		return c.done("/workers/"+done.Worker, "%s is reset in %d processes. These did not answer: %s.", done.Worker, done.Processes,
			strings.Join(done.Missing, ", "))
	}
	return c.done("/workers/"+done.Worker, "%s is reset in all processes (%d).", done.Worker, done.Processes)
}

func (c *call) redeployed(d control.Redeployed, what string) (*page, error) {
	if !d.Changed {
		return c.done("/workers/"+d.Worker, "%s was like that already.", d.Worker)
	}
	return c.done("/workers/"+d.Worker, "%s is %s: deployment %d.", d.Worker, what, d.Deployment.Number)
}
