package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	// activationTimeout is many times the time that a process needs to activate a version, also on a busy machine.
	activationTimeout = 15 * time.Second
	// activationAnswer is how long the processes have to answer before they are asked again.
	activationAnswer = 250 * time.Millisecond
)

// errNoProcess is the error of Await when no process runs.
var errNoProcess = errors.New("no process of the fleet is running; the next one that starts will take it up")

// Activation is how far a deployment of a worker is in effect in a fleet.
type Activation struct {
	known map[string]Member // processes that are there, or were there meanwhile, by ID
	have  map[string]bool   // processes in which the deployment, or a later one, is in effect
	gone  map[string]bool   // processes that reported that they leave; others may not know it yet
}

// String is "active in 2 of 3 processes".
func (a *Activation) String() string {
	if len(a.known) == 1 {
		return fmt.Sprintf("active in %d of 1 process", len(a.have))
	}
	return fmt.Sprintf("active in %d of %d processes", len(a.have), len(a.known))
}

// Counts returns in how many processes it is in effect, and of how many.
func (a *Activation) Counts() (active, processes int) { return len(a.have), len(a.known) }

// missing returns the nodes of the processes that do not have the deployment.
func (a *Activation) missing() (nodes []string) {
	for id, p := range a.known {
		if !a.have[id] {
			nodes = append(nodes, p.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// left removes a process that reported that it leaves.
func (a *Activation) left(id string) {
	a.gone[id] = true
	delete(a.known, id)
	delete(a.have, id)
}

// Await returns when a deployment of OWNER/WORKER is in effect in every process of the fleet. Then the next event finds
// it in whichever process takes the event. Each process that Await asks names the other processes. The error names the
// processes in which it is not in effect within activationTimeout, or says why that is unknown. It is stored in any
// case.
func (c *Client) Await(ctx context.Context, target string, d workers.Deployment) (*Activation, error) {
	ctx, cancel := context.WithTimeout(ctx, activationTimeout)
	defer cancel()
	a := &Activation{map[string]Member{}, map[string]bool{}, map[string]bool{}}
	inbox := c.nc.NewInbox()
	answers, err := c.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return a, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	var members *nats.Subscription
	if c.owner == "" {
		if members, err = c.nc.SubscribeSync(MembersSubject(c.prefix)); err != nil {
			return a, err
		}
		defer func() { _ = members.Unsubscribe() }()
	}
	question := c.message("workers.active", fmt.Appendf(nil, `{"worker":%q}`, target))
	asked := 0
	ask := func() error {
		asked++
		question.Reply = fmt.Sprint(inbox, ".", asked)
		if err := c.nc.PublishMsg(question); err != nil {
			return backoff.Permanent(err)
		}
		return a.take(ctx, question.Reply, answers, members, d)
	}
	tries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Millisecond),
		backoff.WithMaxInterval(100*time.Millisecond))
	err = backoff.Retry(ask, backoff.WithContext(tries, ctx))
	switch {
	case ctx.Err() != nil && len(a.known) == 0:
		return a, fmt.Errorf("no process of the fleet has said within %s whether it has taken it up", activationTimeout)
	case ctx.Err() != nil:
		return a, fmt.Errorf("%s has not taken it up within %s", strings.Join(a.missing(), ", "), activationTimeout)
	}
	return a, err
}

// hear takes the announcements of processes that leave. members may be nil.
func (a *Activation) hear(members *nats.Subscription) {
	if members == nil {
		return
	}
	for n, _, _ := members.Pending(); n > 0; n, _, _ = members.Pending() {
		if m, err := members.NextMsg(time.Millisecond); err == nil {
			if p, left, _ := ParseMember(string(m.Data)); left {
				a.left(p.ID)
			}
		}
	}
}

// take reads the answers to one request, which arrive on subject. It returns nil when all known processes have d.
func (a *Activation) take(ctx context.Context, subject string, answers, members *nats.Subscription,
	d workers.Deployment) error {
	ctx, cancel := context.WithTimeout(ctx, activationAnswer)
	defer cancel()
	for ending := 0; len(a.have) == 0 || len(a.missing()) > ending; {
		m, err := answers.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return backoff.Permanent(errNoProcess)
		}
		if err != nil {
			return err // not all have answered
		}
		a.hear(members)
		var answer ActiveVersion
		if m.Header.Get(micro.ErrorHeader) == processEnding && m.Subject == subject {
			ending++ // it need not have it
		}
		if m.Header.Get(micro.ErrorCodeHeader) != "" {
			continue
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return backoff.Permanent(fmt.Errorf("an answer to workers.active cannot be read: %w", err))
		}
		for _, id := range answer.Left {
			a.left(id)
		}
		for _, p := range answer.Processes {
			if !a.gone[p.ID] {
				a.known[p.ID] = p
			}
		}
		if !a.gone[answer.ID] && answer.has(d) {
			a.have[answer.ID] = true
		}
	}
	return nil
}

// has reports whether a process has d, or a later deployment. A process of an earlier release runs the newest version.
func (v ActiveVersion) has(d workers.Deployment) bool {
	if v.Deployment > 0 || v.Version == "" {
		return v.Deployment >= d.Number
	}
	number, _, _ := strings.Cut(d.Base(), "-")
	wanted, err := strconv.Atoi(number)
	return v.Version == d.Base() || err == nil && v.Number > wanted
}
