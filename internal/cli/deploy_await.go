package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// activationTimeout is many times what a process takes to activate a version.
	activationTimeout = 5 * time.Second
	// activationAnswer is how long all processes may take to say what they have, before they are asked again.
	activationAnswer = 250 * time.Millisecond
)

// errNobody is the error of await when there is no fleet.
var errNobody = errors.New("no process of the fleet is running; the next one that starts will take it up")

// activation is how far a fleet has taken up a version of a worker.
type activation struct {
	known map[string]process // all that are or were there meanwhile, by id
	have  map[string]bool    // those that run the version, or a later one
	gone  map[string]bool    // those that have said that they go: another may not know it yet
}

// String is "active in 2 of 3 processes".
func (a *activation) String() string {
	if len(a.known) == 1 {
		return fmt.Sprintf("active in %d of 1 process", len(a.have))
	}
	return fmt.Sprintf("active in %d of %d processes", len(a.have), len(a.known))
}

// missing are the nodes of those that do not run it.
func (a *activation) missing() (nodes []string) {
	for id, p := range a.known {
		if !a.have[id] {
			nodes = append(nodes, p.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// left forgets a process that has said that it goes.
func (a *activation) left(id string) {
	a.gone[id] = true
	delete(a.known, id)
	delete(a.have, id)
}

// await returns once every process of the fleet has activated w, so that an event sent next finds it wherever it comes. Those that it asks
// tell of the others. The error says which have not within activationTimeout, or why nobody can tell; w is stored all the same.
func (c *remote) await(ctx context.Context, w *events.Worker) (*activation, error) {
	ctx, cancel := context.WithTimeout(ctx, activationTimeout)
	defer cancel()
	a := &activation{map[string]process{}, map[string]bool{}, map[string]bool{}}
	control := string(c.subjects) + ".control."
	inbox := c.nc.NewInbox()
	answers, err := c.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return a, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	members, err := c.nc.SubscribeSync(control + "members")
	if err != nil {
		return a, err
	}
	defer func() { _ = members.Unsubscribe() }()
	question := &nats.Msg{Subject: control + "workers.active", Data: fmt.Appendf(nil, `{"worker":%q}`, w.Target())}
	asked := 0
	ask := func() error {
		asked++
		question.Reply = fmt.Sprint(inbox, ".", asked)
		if err := c.nc.PublishMsg(question); err != nil {
			return backoff.Permanent(err)
		}
		return a.take(ctx, question.Reply, answers, members, w)
	}
	tries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Millisecond), backoff.WithMaxInterval(100*time.Millisecond))
	err = backoff.Retry(ask, backoff.WithContext(tries, ctx))
	switch {
	case ctx.Err() != nil && len(a.known) == 0:
		return a, fmt.Errorf("no process of the fleet has said within %s whether it has taken it up", activationTimeout)
	case ctx.Err() != nil:
		return a, fmt.Errorf("%s has not taken it up within %s", strings.Join(a.missing(), ", "), activationTimeout)
	}
	return a, err
}

// take reads the answers to one question, which come to subject. It is nil when all that are known have w.
func (a *activation) take(ctx context.Context, subject string, answers, members *nats.Subscription, w *events.Worker) error {
	ctx, cancel := context.WithTimeout(ctx, activationAnswer)
	defer cancel()
	for ending := 0; len(a.have) == 0 || len(a.missing()) > ending; {
		m, err := answers.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return backoff.Permanent(errNobody)
		}
		if err != nil {
			return err // not all have answered
		}
		for n, _, _ := members.Pending(); n > 0; n, _, _ = members.Pending() {
			if m, err := members.NextMsg(time.Millisecond); err == nil {
				if text, gone := strings.CutPrefix(string(m.Data), memberBye); gone {
					p, _ := processOf(text)
					a.left(p.ID)
				}
			}
		}
		var answer activeJSON
		if m.Header.Get(micro.ErrorHeader) == processEnding && m.Subject == subject {
			ending++ // it need not take it up
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
		if !a.gone[answer.ID] && (answer.Version == w.Version || answer.Number > w.Number) {
			a.have[answer.ID] = true
		}
	}
	return nil
}
