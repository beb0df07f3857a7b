package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// WorkerOutcomes is how the runs of a worker's split have ended in one process.
type WorkerOutcomes struct {
	Member
	Rollout int `json:"rollout"` // number of the deployment since which is counted
	workers.Outcomes
}

// outcomes answers for this process.
func (s *Server) outcomes(_ context.Context, r WorkerName) (WorkerOutcomes, error) {
	owner, name, err := r.parse()
	if err != nil {
		return WorkerOutcomes{}, err
	}
	self, _, _ := s.cfg.Process.Members()
	rollout, outcomes := s.cfg.Process.Outcomes(owner, name)
	return WorkerOutcomes{self, rollout, outcomes}, nil
}

// AskOutcomes adds up the outcomes of the rollout of in over all processes of the fleet, of which there are this many.
// A process that does not answer in time is left out.
func AskOutcomes(ctx context.Context, nc *nats.Conn, prefix string, in workers.Installation, processes int,
	wait time.Duration) (all workers.Outcomes, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return all, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	question := fmt.Appendf(nil, `{"worker":%q}`, in.Target())
	if err := nc.PublishRequest(prefix+".control.versions.outcomes", inbox, question); err != nil {
		return all, err
	}
	heard := map[string]bool{}
	for len(heard) < processes {
		m, err := answers.NextMsgWithContext(ctx)
		if errors.Is(err, context.DeadlineExceeded) && len(heard) > 0 {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("ask the processes for their outcomes: %w", err)
		}
		var one WorkerOutcomes
		if m.Header.Get(micro.ErrorCodeHeader) != "" || json.Unmarshal(m.Data, &one) != nil || heard[one.ID] {
			continue
		}
		heard[one.ID] = true
		if one.Rollout == in.Deployment.Rollout.ID {
			all.Add(one.Outcomes)
		}
	}
	return all, nil
}
