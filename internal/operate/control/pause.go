package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// PauseTarget names a worker, or an owner with all its workers.
type PauseTarget struct {
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER; "" = all workers of the owner
	asker         // an owner does not resume what operators have paused
}

// parse returns the owner, and the worker or workers.EveryWorker.
func (r PauseTarget) parse() (owner, worker string, err error) {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return "", "", err
	}
	if err := (OwnerName{r.Owner}).check(); err != nil {
		return "", "", err
	}
	return r.Owner, cmp.Or(r.Worker, workers.EveryWorker), CheckName("worker", r.Worker)
}

// Pause pauses a worker or an owner.
type Pause struct {
	PauseTarget
	// SkipTicks leaves out the ticks of schedules meanwhile. Otherwise they are stored, as other events are.
	SkipTicks bool `json:"skipTicks,omitempty"`
}

// Paused is a worker, or an owner with all its workers, whose events do not start.
type Paused struct {
	Owner     string    `json:"owner"`
	Worker    string    `json:"worker,omitempty"` // "" = all workers of the owner
	Since     time.Time `json:"since"`
	SkipTicks bool      `json:"skipTicks,omitempty"`
	ByOwner   bool      `json:"byOwner,omitempty"` // the owner's people paused it, and may resume it
}

// Target is OWNER/WORKER, or OWNER.
func (p Paused) Target() string {
	if p.Worker == "" {
		return p.Owner
	}
	return p.Owner + "/" + p.Worker
}

// PausedOf lists what a policy pauses, all workers first.
func PausedOf(owner string, policy *workers.Policy) []Paused {
	list := make([]Paused, 0, len(policy.Paused))
	for _, worker := range slices.Sorted(maps.Keys(policy.Paused)) {
		p := policy.Paused[worker]
		if worker == workers.EveryWorker {
			worker = ""
		}
		list = append(list, Paused{owner, worker, p.Since, p.SkipTicks, p.ByOwner})
	}
	return list
}

// PausedOwner is what is paused of an owner.
type PausedOwner struct {
	Owner  string   `json:"owner"`
	Paused []Paused `json:"paused"`
}

// pause keeps events from starting, until resume.
func (o *Operations) pause(ctx context.Context, r Pause) (PausedOwner, error) {
	owner, worker, err := r.parse()
	if err != nil {
		return PausedOwner{}, err
	}
	if worker != workers.EveryWorker {
		if _, err := o.workers.Installation(ctx, owner, worker); err != nil {
			return PausedOwner{}, err
		}
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	wanted := workers.Pause{Since: now, SkipTicks: r.SkipTicks, ByOwner: r.by != ""}
	return o.changePaused(ctx, r.PauseTarget, func(p *workers.Policy) {
		was, is := p.Paused[worker]
		one := wanted
		if is { // it goes on
			one.Since, one.ByOwner = was.Since, was.ByOwner && one.ByOwner
		}
		if p.Paused == nil {
			p.Paused = map[string]workers.Pause{}
		}
		p.Paused[worker] = one
	})
}

// resume lets events start again. A worker that is not paused stays as it is.
func (o *Operations) resume(ctx context.Context, r PauseTarget) (PausedOwner, error) {
	_, worker, err := r.parse()
	if err != nil {
		return PausedOwner{}, err
	}
	return o.changePaused(ctx, r, func(p *workers.Policy) { delete(p.Paused, worker) })
}

// changePaused changes what is paused of an owner. An owner's people cannot change what operators have paused.
func (o *Operations) changePaused(ctx context.Context, r PauseTarget,
	change func(*workers.Policy)) (PausedOwner, error) {
	owner, worker, err := r.parse()
	if err != nil {
		return PausedOwner{}, err
	}
	var refusal error
	p, err := o.policies.Set(ctx, owner, func(p *workers.Policy) {
		refusal = nil
		if was, is := p.Paused[worker]; is && !was.ByOwner && r.by != "" {
			refusal = &Error{Code: http.StatusForbidden, Text: fmt.Sprintf(
				"%s was paused by the fleet's operators: they can resume it", Paused{Owner: owner, Worker: r.Worker}.Target())}
			return
		}
		if change(p); len(p.Paused) > workers.MaxPaused {
			refusal = refused("%d workers of %s are paused one by one, and no more can be: pause the owner", workers.MaxPaused, owner)
			delete(p.Paused, worker)
		}
	})
	if err = cmp.Or(refusal, err); err != nil {
		return PausedOwner{}, err
	}
	return PausedOwner{owner, PausedOf(owner, &p)}, nil
}

// ListPaused asks for what is paused, of one owner or of all.
type ListPaused struct {
	Owner string `json:"owner,omitempty"`
}

// PausedList is what is paused, sorted.
type PausedList struct {
	Paused []Paused `json:"paused"`
}

// listPaused lists what is paused.
func (o *Operations) listPaused(ctx context.Context, r ListPaused) (PausedList, error) {
	list := PausedList{Paused: []Paused{}}
	if err := CheckName("owner", r.Owner); err != nil {
		return list, err
	}
	if r.Owner != "" {
		p, err := o.policies.Get(ctx, r.Owner)
		list.Paused = append(list.Paused, PausedOf(r.Owner, &p)...)
		return list, err
	}
	all, err := o.policies.List(ctx)
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		p := all[owner]
		list.Paused = append(list.Paused, PausedOf(owner, &p)...)
	}
	return list, err
}

// PausedHere is what a process knows of an owner's pauses, and what of the owner still runs in it.
type PausedHere struct {
	Member
	PausedOwner
	Running int `json:"running"` // attempts of the owner, or of the worker that was asked for

	Processes []Member `json:"processes"` // as in the answer of flow
	Left      []string `json:"left,omitempty"`
}

func (p PausedHere) from() (self Member, known []Member, left []string) {
	return p.Member, p.Processes, p.Left
}

// pausedHere answers for this process.
func (s *Server) pausedHere(_ context.Context, r PauseTarget) (PausedHere, error) {
	owner, worker, err := r.parse()
	if err != nil {
		return PausedHere{}, err
	}
	a := PausedHere{PausedOwner: PausedOwner{owner, PausedOf(owner, s.cfg.Process.Policy(owner))}}
	if worker == workers.EveryWorker {
		a.Running = s.cfg.Process.WorkersFlow(owner, "").Running
	} else {
		for _, w := range s.cfg.Process.WorkersFlow(owner, worker).Workers {
			a.Running += w.Running
		}
	}
	a.Member, a.Processes, a.Left = s.cfg.Process.Members()
	return a, nil
}

// pauseTimeout is many times the time that a process needs to take up a pause, also on a busy machine.
const pauseTimeout = 15 * time.Second

// AwaitPaused returns when all processes of the fleet have taken up what pause or resume answered: how many there are,
// and how many attempts of the target run. No process at all is no error: one that starts takes it up first.
func AwaitPaused(ctx context.Context, c *Client, target PauseTarget,
	want PausedOwner) (processes, running int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	for {
		all, missing, err := askEach[PausedHere](ctx, c, PausedActive.Name, target, time.Second)
		if errors.Is(err, nats.ErrNoResponders) {
			return 0, 0, nil
		}
		running, late := 0, len(missing)
		for _, one := range all {
			running += one.Running
			if !slices.Equal(one.Paused, want.Paused) {
				late++
			}
		}
		if err == nil && late == 0 {
			return len(all), running, nil
		}
		select {
		case <-ctx.Done():
			return len(all) - late, running, cmp.Or(err, fmt.Errorf("stored, but %d processes have not taken it up within %s", late,
				pauseTimeout))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
