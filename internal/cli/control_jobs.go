package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/consumer"
)

const (
	// maxJobs is how many jobs a process does at once.
	maxJobs = 8
	// keptJobs is of how many jobs that have ended it still tells.
	keptJobs = 64
	// keptErrors is how many errors of letters a job tells, the last ones.
	keptErrors = 20
)

// jobs are what a process does that takes longer than a request: it ends with the process, and the letters it has not come to stay as they are.
type jobs struct {
	mu   sync.Mutex
	list []*job // oldest first
	last int
}

// job is one.
type job struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	state jobState
}

// jobState is what is told of a job.
type jobState struct {
	Job    string         `json:"job"`
	Does   string         `json:"does"`  // replay or purge
	State  string         `json:"state"` // running, done, cancelled or failed
	DryRun bool           `json:"dryRun,omitempty"`
	Error  string         `json:"error,omitempty"` // why it failed
	Node   string         `json:"node"`
	Began  time.Time      `json:"began"`
	Ended  time.Time      `json:"ended,omitzero"`
	Last   uint64         `json:"last,omitempty"` // the letter it came to last
	Errors []letterErrors `json:"errors,omitempty"`
	consumer.Tally
}

type letterErrors struct {
	ID    uint64 `json:"id"`
	Error string `json:"error"`
}

func (j *job) now() jobState {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Errors = append([]letterErrors(nil), s.Errors...)
	return s
}

func (j *job) step(p consumer.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Tally, j.state.Last = p.Tally, p.Letter.Seq
	if p.Err != nil {
		j.state.Errors = append(j.state.Errors, letterErrors{p.Letter.Seq, p.Err.Error()})
		j.state.Errors = j.state.Errors[max(0, len(j.state.Errors)-keptErrors):]
	}
}

func (j *job) ended(t consumer.Tally, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Tally, j.state.Ended, j.state.State = t, time.Now().UTC(), "done"
	switch {
	case errors.Is(err, context.Canceled):
		j.state.State = "cancelled"
	case err != nil:
		j.state.State, j.state.Error = "failed", err.Error()
	}
}

// begin starts a job and returns what there is to tell of it.
func (c *control) begin(does string, dryRun bool, do func(context.Context, func(consumer.Progress)) (consumer.Tally, error)) (any, error) {
	ctx, cancel := context.WithCancel(c.life)
	j := &job{cancel: cancel}
	j.state = jobState{Does: does, State: "running", DryRun: dryRun, Node: nodeName(), Began: time.Now().UTC()}
	if err := c.jobs.add(j, c.service.Info().ID); err != nil {
		cancel()
		return nil, err
	}
	c.running.Go(func() {
		defer cancel()
		t, err := do(ctx, j.step)
		j.ended(t, err)
		s := j.now()
		c.f.log.Info().Str("job", s.Job).Str("does", does).Str("state", s.State).Int("done", t.Done).Int("failed", t.Failed).Msg("job of dead letters")
	})
	return j.now(), nil
}

func (js *jobs) add(j *job, service string) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	running := 0
	kept := js.list[:0]
	over := len(js.list) - keptJobs
	for _, old := range js.list {
		if old.now().State == "running" {
			running++
		} else if over > 0 {
			over--
			continue
		}
		kept = append(kept, old)
	}
	js.list = kept
	if running >= maxJobs {
		return &controlError{http.StatusServiceUnavailable, fmt.Sprintf("this process does %d jobs already, and no more at once: try again", running)}
	}
	js.last++
	j.state.Job = service + "." + strconv.Itoa(js.last)
	js.list = append(js.list, j)
	return nil
}

func (js *jobs) find(name string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if j.now().Job == name {
			return j
		}
	}
	return nil
}

// jobRequest names a job.
type jobRequest struct {
	Job    string `json:"job"`
	Cancel bool   `json:"cancel"`
}

func (c *control) deadJob(ctx context.Context, r request) (any, error) {
	return c.aboutJob(ctx, r, false)
}

func (c *control) deadCancel(ctx context.Context, r request) (any, error) {
	return c.aboutJob(ctx, r, true)
}

// aboutJob asks the process that has the job, which may be this one.
func (c *control) aboutJob(ctx context.Context, r request, cancel bool) (any, error) {
	var req struct {
		Job string `json:"job"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	service, n, ok := strings.Cut(req.Job, ".")
	if _, err := strconv.Atoi(n); !ok || err != nil || service == "" || strings.ContainsAny(service, " \t\r\n*>$") {
		return nil, refused("job %q: it is what dead.replay and dead.purge answer as job", req.Job)
	}
	data, err := json.Marshal(jobRequest{req.Job, cancel})
	if err != nil {
		return nil, err
	}
	if service == c.service.Info().ID {
		return c.ownJob(ctx, request{data: data})
	}
	ctx, stop := context.WithTimeout(ctx, controlTimeout/4)
	defer stop()
	m := &nats.Msg{Subject: c.jobSubject(service), Data: data, Header: nats.Header{"Authorization": {r.header.Get("Authorization")}}}
	answer, err := c.f.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, &controlError{http.StatusNotFound, fmt.Sprintf("job %s: its process has ended, and the job with it; the letters it did not come to are as they were", req.Job)}
	}
	if err != nil {
		return nil, err
	}
	if code := answer.Header.Get(micro.ErrorCodeHeader); code != "" {
		n, _ := strconv.Atoi(code)
		return nil, &controlError{n, answer.Header.Get(micro.ErrorHeader)}
	}
	return json.RawMessage(answer.Data), nil
}

// ownJob tells of a job of this process, and cancels it.
func (c *control) ownJob(_ context.Context, r request) (any, error) {
	var req jobRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	j := c.jobs.find(req.Job)
	if j == nil {
		return nil, &controlError{http.StatusNotFound, fmt.Sprintf("job %q: there is none of this name, or no longer", req.Job)}
	}
	if req.Cancel {
		j.cancel()
	}
	return j.now(), nil
}

// deadJobs lists the jobs of this process.
func (c *control) deadJobs(_ context.Context, r request) (any, error) {
	if err := decodeRequest(r.data, &struct{}{}); err != nil {
		return nil, err
	}
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	states := make([]jobState, 0, len(c.jobs.list))
	for _, j := range c.jobs.list {
		s := j.now()
		s.Errors = nil
		states = append(states, s)
	}
	return map[string]any{"node": nodeName(), "jobs": states}, nil
}
