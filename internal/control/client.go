package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events"
)

// Client sends requests to the control endpoints of a fleet. If the fleet refuses a request, the error is an *Error.
// nats.ErrNoResponders means that no process answers. Several goroutines may use a Client.
type Client struct {
	nc     *nats.Conn
	prefix string // first part of the subjects
	token  string
	owner  string // whose door is used; "": the control endpoints
	claims string // who the sender says it is
}

// NewClient returns a Client that uses nc. token is the token for guarded endpoints, and may be empty.
func NewClient(nc *nats.Conn, prefix, token string) *Client {
	return &Client{nc: nc, prefix: prefix, token: token}
}

// NewOwnerClient returns a Client that uses the door of an owner, with a connection of this owner's user. Requests
// reach only what is the owner's. Requests that concern no owner, as Drain, are not answered there.
func NewOwnerClient(nc *nats.Conn, prefix, owner string) *Client {
	return &Client{nc: nc, prefix: prefix, owner: owner}
}

// Claim sets what requests say of who sends them. The audit stream has it beside what is known. It must not be called
// while requests are sent.
func (c *Client) Claim(who string) { c.claims = who }

// ask sends a request to an endpoint and decodes the first answer.
func (c *Client) ask(ctx context.Context, endpoint string, request, answer any) error {
	data, err := encodeJSON(request)
	if err != nil {
		return err
	}
	if _, limited := ctx.Deadline(); !limited { // a server that refuses the message does not answer
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, requestTimeout+requestTimeout/4)
		defer stop()
	}
	r, err := c.nc.RequestMsgWithContext(ctx, c.message(endpoint, data))
	if err != nil {
		return err
	}
	if err := refusedBy(r); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Data, answer); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", endpoint, err)
	}
	return nil
}

// message returns the message of a request.
func (c *Client) message(endpoint string, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: c.prefix + ".control." + endpoint, Data: data, Header: nats.Header{}}
	if c.owner != "" {
		m.Subject = doorSubject(c.prefix, c.owner, endpoint)
	}
	if c.claims != "" {
		m.Header.Set(HeaderClaims, c.claims)
	}
	if c.token != "" {
		m.Header.Set("Authorization", "Bearer "+c.token)
	}
	return m
}

// refusedBy returns the *Error in an answer, or nil.
func refusedBy(answer *nats.Msg) error {
	code := answer.Header.Get(micro.ErrorCodeHeader)
	if code == "" {
		return nil
	}
	n, _ := strconv.Atoi(code)
	return &Error{Code: n, Text: answer.Header.Get(micro.ErrorHeader), Module: readModuleFault(answer.Data)}
}

// asked does what ask does, and returns an answer of type Answer.
func asked[Answer any](ctx context.Context, c *Client, endpoint string, request any) (a Answer, err error) {
	err = c.ask(ctx, endpoint, request, &a)
	return a, err
}

// Stats returns what is stored for the whole fleet.
func (c *Client) Stats(ctx context.Context) (FleetStats, error) {
	return asked[FleetStats](ctx, c, "stats", None{})
}

// Settings returns the settings of the fleet.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return asked[Settings](ctx, c, "settings", None{})
}

// Workers lists active versions.
func (c *Client) Workers(ctx context.Context, r ListWorkers) (WorkerList, error) {
	return asked[WorkerList](ctx, c, "workers.list", r)
}

// WorkerVersions lists the versions of a worker.
func (c *Client) WorkerVersions(ctx context.Context, r WorkerName) (WorkerVersions, error) {
	return asked[WorkerVersions](ctx, c, "workers.versions", r)
}

// Owners lists the owners that have a policy.
func (c *Client) Owners(ctx context.Context) (OwnerList, error) {
	return asked[OwnerList](ctx, c, "owners.list", None{})
}

// OwnerPolicy returns the policy of an owner.
func (c *Client) OwnerPolicy(ctx context.Context, r OwnerName) (OwnerPolicy, error) {
	return asked[OwnerPolicy](ctx, c, "owners.get", r)
}

// SetOwnerPolicy changes the policy of an owner.
func (c *Client) SetOwnerPolicy(ctx context.Context, r SetOwner) (OwnerPolicy, error) {
	return asked[OwnerPolicy](ctx, c, "owners.set", r)
}

// RemoveOwnerPolicy removes the policy of an owner.
func (c *Client) RemoveOwnerPolicy(ctx context.Context, r OwnerName) (OwnerPolicy, error) {
	return asked[OwnerPolicy](ctx, c, "owners.rm", r)
}

// Drain makes the processes that r names drain and end. It returns the answer of the first one.
func (c *Client) Drain(ctx context.Context, r Drain) (Draining, error) {
	return asked[Draining](ctx, c, "drain", r)
}

// Schedules lists schedules.
func (c *Client) Schedules(ctx context.Context, r ListWorkers) (ScheduleList, error) {
	return asked[ScheduleList](ctx, c, "schedules.list", r)
}

// NextTicks returns the next ticks of a schedule.
func (c *Client) NextTicks(ctx context.Context, r NextTicks) (Ticks, error) {
	return asked[Ticks](ctx, c, "schedules.next", r)
}

// WaitingEvents lists events that wait for their time.
func (c *Client) WaitingEvents(ctx context.Context, r ListWaiting) (WaitingList, error) {
	return asked[WaitingList](ctx, c, "schedules.waiting", r)
}

// CancelWaiting cancels the waiting events of an id.
func (c *Client) CancelWaiting(ctx context.Context, r CancelWaiting) (Cancelled, error) {
	return asked[Cancelled](ctx, c, "schedules.cancel", r)
}

// PauseSchedule keeps a schedule from ticking until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, r ScheduleName) (Schedule, error) {
	return asked[Schedule](ctx, c, "schedules.pause", r)
}

// ResumeSchedule lets a paused schedule tick again.
func (c *Client) ResumeSchedule(ctx context.Context, r ScheduleName) (Schedule, error) {
	return asked[Schedule](ctx, c, "schedules.resume", r)
}

// DeadLetters lists dead letters.
func (c *Client) DeadLetters(ctx context.Context, r ListLetters) (LetterList, error) {
	return asked[LetterList](ctx, c, "dead.list", r)
}

// DeadLetter returns a letter with its body.
func (c *Client) DeadLetter(ctx context.Context, r LetterID) (*events.LetterJSON, error) {
	return asked[*events.LetterJSON](ctx, c, "dead.show", r)
}

// EditDeadLetter changes a letter.
func (c *Client) EditDeadLetter(ctx context.Context, r EditLetter) (EditedLetter, error) {
	return asked[EditedLetter](ctx, c, "dead.edit", r)
}

// Replay starts a job that replays letters.
func (c *Client) Replay(ctx context.Context, r Replay) (Job, error) {
	return asked[Job](ctx, c, "dead.replay", r)
}

// Replays returns the results of replays.
func (c *Client) Replays(ctx context.Context, r ReplayFilter) (ReplayList, error) {
	return asked[ReplayList](ctx, c, "dead.replays", r)
}

// Purge starts a job that removes letters.
func (c *Client) Purge(ctx context.Context, r Selection) (Job, error) {
	return asked[Job](ctx, c, "dead.purge", r)
}

// Job returns the state of a job.
func (c *Client) Job(ctx context.Context, r JobName) (Job, error) {
	return asked[Job](ctx, c, "dead.job", r)
}

// DeadJobs returns the jobs of the first process that answers.
func (c *Client) DeadJobs(ctx context.Context) (JobList, error) {
	return asked[JobList](ctx, c, "dead.jobs", ListJobs{})
}

// CancelJob cancels a job.
func (c *Client) CancelJob(ctx context.Context, r JobName) (Job, error) {
	return asked[Job](ctx, c, "dead.cancel", r)
}

// Deployments lists the deployments of a worker.
func (c *Client) Deployments(ctx context.Context, r WorkerName) (WorkerDeployments, error) {
	return asked[WorkerDeployments](ctx, c, "deployments.list", r)
}

// Promote gives a version a share, or everything.
func (c *Client) Promote(ctx context.Context, r Promote) (Redeployed, error) {
	return asked[Redeployed](ctx, c, "deployments.promote", r)
}

// Rollback gives everything to an older version.
func (c *Client) Rollback(ctx context.Context, r Rollback) (Redeployed, error) {
	return asked[Redeployed](ctx, c, "deployments.rollback", r)
}

// SetAlias names a version, or removes a name.
func (c *Client) SetAlias(ctx context.Context, r Alias) (Redeployed, error) {
	return asked[Redeployed](ctx, c, "deployments.alias", r)
}
