package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
)

const (
	// maxJobs is how many jobs of operators a process runs at once, and how many of owners beside them.
	maxJobs = 8
	// maxOwnerJobs is how many of them may be of one owner.
	maxOwnerJobs = 2
	// keptJobs is the number of ended jobs of operators that a process still reports, and that of owners beside them.
	keptJobs = 64
	// keptOwnerJobs is how many of them may be of one owner.
	keptOwnerJobs = 8
	// keptErrors is the number of letter errors that a job keeps. It keeps the last ones.
	keptErrors = 20
)

// jobs are the operations of a process that take longer than a request. A job ends with the process. The letters that
// it has not reached stay as they are.
type jobs struct {
	ops     *Operations
	process Process
	life    *life
	gate    *gate   // charges owners for their jobs; nil in a command
	id      string  // of this process on $SRV
	fleet   *Client // asks the process that has a job
	queue   *cancels.Fleet
	log     zerolog.Logger

	mu   sync.Mutex
	list []*job // oldest first
	last int
}

// job is one such operation.
type job struct {
	cancel context.CancelFunc
	owner  string // by whose API it began; "": none

	mu      sync.Mutex
	state   Job
	letters jobLetters
}

// Job is the report of a job, which is a replay or purge of dead letters, or a purge of events.
type Job struct {
	Job    string        `json:"job"`
	Does   string        `json:"does"`  // replay, purge or purge-events
	State  string        `json:"state"` // running, done, cancelled or failed
	DryRun bool          `json:"dryRun,omitempty"`
	Error  string        `json:"error,omitempty"` // why it failed
	Owner  string        `json:"owner,omitempty"` // by whose API it began
	Node   string        `json:"node"`
	Began  time.Time     `json:"began"`
	Ended  time.Time     `json:"ended,omitzero"`
	Last   uint64        `json:"last,omitempty"` // the last letter that it reached
	Errors []LetterError `json:"errors,omitempty"`
	deadletter.Counts
	// Letters are outcomes of letters, if the request asks for them, and Seen is how many there were up to the last one.
	Letters []JobLetter `json:"letters,omitempty"`
	Seen    int         `json:"seen,omitempty"`
}

// LetterError says why a letter was skipped.
type LetterError struct {
	ID    uint64 `json:"id"`
	Error string `json:"error"`
}

func (j *job) now() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Errors = append([]LetterError(nil), s.Errors...)
	return s
}

func (j *job) step(p deadletter.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Counts, j.state.Last = p.Counts, p.Letter.Seq
	j.letters.add(outcome(p))
	if p.Err != nil {
		j.state.Errors = append(j.state.Errors, LetterError{p.Letter.Seq, p.Err.Error()})
		j.state.Errors = j.state.Errors[max(0, len(j.state.Errors)-keptErrors):]
	}
}

// counts notes what was done so far.
func (j *job) counts(c deadletter.Counts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Counts = c
}

func (j *job) ended(t deadletter.Counts, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Counts, j.state.Ended, j.state.State = t, time.Now().UTC(), "done"
	switch {
	case errors.Is(err, context.Canceled):
		j.state.State = "cancelled"
	case err != nil:
		j.state.State, j.state.Error = "failed", err.Error()
	}
}

// doJob does the work of a job. It calls wait before each letter, and each after it.
type doJob func(ctx context.Context, wait func(context.Context) error,
	each func(deadletter.Progress)) (deadletter.Counts, error)

// begin starts a job and returns its first state. The CPU time of the job is charged to its owner.
func (js *jobs) begin(does, owner string, dryRun bool, do doJob) (Job, error) {
	return js.start(does, owner, dryRun, func(ctx context.Context, j *job,
		wait func(context.Context) error) (deadletter.Counts, error) {
		return do(ctx, wait, j.step)
	})
}

// start is begin for work that tells j by itself what it has done.
func (js *jobs) start(does, owner string, dryRun bool, do func(ctx context.Context, j *job,
	wait func(context.Context) error) (deadletter.Counts, error)) (Job, error) {
	ctx, cancel := context.WithCancel(js.life.ctx)
	j := &job{cancel: cancel, owner: owner}
	j.state = Job{Does: does, State: "running", DryRun: dryRun, Owner: owner, Node: js.ops.node, Began: time.Now().UTC()}
	if err := js.add(j); err != nil {
		cancel()
		return Job{}, err
	}
	js.life.running.Go(func() {
		defer cancel()
		js.gate.job(owner, func(wait func(context.Context) error) { j.ended(do(ctx, j, wait)) })
		now := j.now()
		js.log.Info().Str("job", now.Job).Str("does", does).Str("state", now.State).Int("done", now.Done).
			Int("failed", now.Failed).Msg("job of dead letters or events")
	})
	return j.now(), nil
}

// replay starts a job that replays letters.
func (js *jobs) replay(_ context.Context, r Replay) (Job, error) {
	sel, err := r.Selection.parse()
	if err != nil {
		return Job{}, err
	}
	o, err := r.options()
	if err != nil {
		return Job{}, err
	}
	o.Runs = WhoRuns(func(context.Context) (*deploy.Store, error) { return js.ops.workers, nil })
	o.Unnoted = func(err error) { js.log.Warn().Err(err).Msg("replays could not be noted") }
	return js.begin("replay", r.by, o.DryRun, func(ctx context.Context, wait func(context.Context) error,
		each func(deadletter.Progress)) (deadletter.Counts, error) {
		sel.Filter.Wait = wait
		return js.ops.dead.ReplayAll(ctx, sel, o, each)
	})
}

// purge starts a job that removes letters.
func (js *jobs) purge(_ context.Context, r Selection) (Job, error) {
	sel, err := r.parse()
	if err != nil {
		return Job{}, err
	}
	return js.begin("purge", r.by, r.DryRun, func(ctx context.Context, wait func(context.Context) error,
		each func(deadletter.Progress)) (deadletter.Counts, error) {
		sel.Filter.Wait = wait
		return js.ops.dead.Purge(ctx, sel, r.DryRun, each)
	})
}

func (js *jobs) add(j *job) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.forget(func(old *job) bool { return old.owner == "" }, keptJobs)
	js.forget(func(old *job) bool { return old.owner != "" && old.owner == j.owner }, keptOwnerJobs)
	js.forget(func(old *job) bool { return old.owner != "" }, keptJobs)
	own, owners, operators := js.running(j.owner)
	switch {
	case j.owner == "" && operators >= maxJobs:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process does %d jobs already, and no more at once: try again",
			operators)}
	case j.owner != "" && own >= maxOwnerJobs:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process does %d jobs of owner %s already, and no more at once: try again", own,
			j.owner)}
	case j.owner != "" && owners >= maxJobs:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process does %d jobs of owners already, and no more at once: try again",
			owners)}
	}
	for _, old := range js.list {
		old.forgetLetters(time.Now())
	}
	js.last++
	j.state.Job = js.id + "." + strconv.Itoa(js.last)
	js.list = append(js.list, j)
	return nil
}

// forget removes the oldest ended jobs for which of is true, so that with another one at most keep of them are left.
func (js *jobs) forget(of func(*job) bool, keep int) {
	over := 1 - keep
	for _, old := range js.list {
		if of(old) && old.now().State != "running" {
			over++
		}
	}
	js.list = slices.DeleteFunc(js.list, func(old *job) bool {
		if over <= 0 || !of(old) || old.now().State == "running" {
			return false
		}
		over--
		return true
	})
}

// running counts the jobs that run: those of an owner, those of all owners, and those of no owner.
func (js *jobs) running(owner string) (own, owners, operators int) {
	for _, j := range js.list {
		switch {
		case j.now().State != "running":
		case j.owner == "":
			operators++
		default:
			owners++
			if j.owner == owner {
				own++
			}
		}
	}
	return own, owners, operators
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

// JobName names a job.
type JobName struct {
	Job string `json:"job"`
	// Letters asks for the outcomes of letters too: those after the first Seen ones that the process still knows.
	Letters bool `json:"letters,omitempty"`
	Seen    int  `json:"seen,omitempty"`

	asker // a job of another owner is not found
}

// jobRequest is the request that a process sends to the process that has the job.
type jobRequest struct {
	JobName
	Cancel bool   `json:"cancel"`
	Owner  string `json:"owner,omitempty"` // who asks, or ""
}

// subject is where this process is asked about its jobs.
func (js *jobs) subject() string { return js.fleet.prefix + ".control.job." + js.id }

// get returns the state of a job of any process.
func (js *jobs) get(ctx context.Context, r JobName) (Job, error) {
	return js.ask(ctx, jobRequest{r, false, r.by})
}

// cancel cancels a job of any process.
func (js *jobs) cancel(ctx context.Context, r JobName) (Job, error) {
	return js.ask(ctx, jobRequest{r, true, r.by})
}

// ask asks the process that has the job, which may be this one.
func (js *jobs) ask(ctx context.Context, r jobRequest) (j Job, err error) {
	service, n, ok := strings.Cut(r.Job, ".")
	if _, err := strconv.Atoi(n); !ok || err != nil || service == "" || strings.ContainsAny(service, " \t\r\n*>$") {
		return j, refused("job %q: it is what dead.replay, dead.purge and events.purge answer as job", r.Job)
	}
	if service == js.id {
		return js.own(ctx, r)
	}
	ctx, stop := context.WithTimeout(ctx, requestTimeout/4)
	defer stop()
	err = js.fleet.ask(ctx, "job."+service, r, &j)
	if errors.Is(err, nats.ErrNoResponders) {
		return j, &Error{Code: http.StatusNotFound, Text: fmt.Sprintf("job %s: its process has ended, and the job with it; the letters it did not come to are as they were", r.Job)}
	}
	return j, err
}

// own returns the state of a job of this process. It cancels the job if the request says so.
func (js *jobs) own(_ context.Context, r jobRequest) (Job, error) {
	j := js.find(r.Job)
	if j == nil || r.Owner != "" && j.owner != r.Owner {
		return Job{}, &Error{Code: http.StatusNotFound, Text: fmt.Sprintf("job %q: there is none of this name, or no longer", r.Job)}
	}
	if r.Cancel {
		j.cancel()
	}
	state := j.now()
	if r.Letters {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.letters.after(r.Seen, js.ops.answerRoom()/2, &state)
	}
	return state, nil
}

// JobList is the jobs of one process, the oldest first.
type JobList struct {
	Member
	Jobs []Job `json:"jobs"`

	// Processes are all processes of the fleet that this one knows, including itself. Left are the IDs of the last ones
	// that reported that they leave.
	Processes []Member `json:"processes"`
	Left      []string `json:"left,omitempty"`
}

func (l JobList) from() (self Member, known []Member, left []string) {
	return l.Member, l.Processes, l.Left
}

// ListJobs asks for the jobs of each process.
type ListJobs struct{ asker }

// all lists the jobs of this process.
func (js *jobs) all(_ context.Context, r ListJobs) (JobList, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	list := JobList{Jobs: make([]Job, 0, len(js.list))}
	list.Member, list.Processes, list.Left = js.process.Members()
	for _, j := range js.list {
		if r.by != "" && j.owner != r.by {
			continue
		}
		state := j.now()
		state.Errors = nil
		list.Jobs = append(list.Jobs, state)
	}
	return list, nil
}

// AllJobs returns the jobs of all processes, the oldest first. It waits a second at most for processes that another has
// named. missing are those that did not answer. nats.ErrNoResponders means that no process answers.
func (c *Client) AllJobs(ctx context.Context) (jobs []Job, missing []Member, err error) {
	lists, missing, err := askEach[JobList](ctx, c, "dead.jobs", None{}, time.Second)
	for _, l := range lists {
		jobs = append(jobs, l.Jobs...)
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return a.Began.Compare(b.Began) })
	return jobs, missing, err
}
