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
}

// NewClient returns a Client that uses nc. token is the token for guarded endpoints, and may be empty.
func NewClient(nc *nats.Conn, prefix, token string) *Client { return &Client{nc, prefix, token} }

// ask sends a request to an endpoint and decodes the first answer.
func (c *Client) ask(ctx context.Context, endpoint string, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: c.prefix + ".control." + endpoint, Data: data, Header: nats.Header{}}
	if c.token != "" {
		m.Header.Set("Authorization", "Bearer "+c.token)
	}
	r, err := c.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return err
	}
	if code := r.Header.Get(micro.ErrorCodeHeader); code != "" {
		n, _ := strconv.Atoi(code)
		return &Error{Code: n, Text: r.Header.Get(micro.ErrorHeader)}
	}
	if err := json.Unmarshal(r.Data, answer); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", endpoint, err)
	}
	return nil
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
func (c *Client) DeadLetters(ctx context.Context, r Filter) (LetterList, error) {
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

// CancelJob cancels a job.
func (c *Client) CancelJob(ctx context.Context, r JobName) (Job, error) {
	return asked[Job](ctx, c, "dead.cancel", r)
}
