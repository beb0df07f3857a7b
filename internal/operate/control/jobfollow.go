package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// keptLetters is how many letters a job remembers the outcomes of at least: the last ones, and at most twice as many.
	keptLetters = 512
	// maxLetterError is the longest error of such an outcome, in bytes.
	maxLetterError = 200
	// askedWithin is how long an ended job remembers outcomes.
	askedWithin = time.Minute
	// jobPoll is how often FollowJob asks.
	jobPoll = 100 * time.Millisecond
	// cancelWait is how long FollowJob waits for a job that it has cancelled.
	cancelWait = 5 * time.Second
)

// JobLetter is what a job did with a letter.
type JobLetter struct {
	ID     uint64 `json:"id"`
	Owner  string `json:"owner,omitempty"` // empty: the letter cannot be read
	Worker string `json:"worker,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"` // why it was skipped
}

// outcome describes a step of a job.
func outcome(p deadletter.Progress) JobLetter {
	l := JobLetter{ID: p.Letter.Seq, Owner: p.Letter.Owner, Worker: p.Letter.Worker, Kind: p.Letter.Kind,
		Reason: string(p.Letter.Failure.Reason)}
	if p.Err != nil {
		l.Error = cut(p.Err.Error(), maxLetterError)
	}
	return l
}

// Letter returns the letter as far as the outcome tells it.
func (l JobLetter) Letter() *events.DeadLetter {
	d := &events.DeadLetter{Seq: l.ID, Owner: l.Owner, Worker: l.Worker, Kind: l.Kind}
	d.Failure.Reason = events.Reason(l.Reason)
	return d
}

// jobLetters are the last outcomes of a job.
type jobLetters struct {
	last []JobLetter
	seen int // all outcomes so far
}

func (l *jobLetters) add(one JobLetter) {
	if l.seen++; len(l.last) == 2*keptLetters {
		l.last = append(l.last[:0], l.last[keptLetters:]...)
	}
	l.last = append(l.last, one)
}

// after adds to the state of a job the outcomes after the first seen ones, as many as fit room: the last ones.
func (l *jobLetters) after(seen int, room int, into *Job) {
	into.Seen = l.seen
	list := l.last[max(0, len(l.last)-max(0, l.seen-seen)):]
	for i := len(list) - 1; i >= 0; i-- {
		text, err := json.Marshal(list[i])
		if room -= len(text) + 1; err != nil || room < 0 {
			list = list[i+1:]
			break
		}
	}
	into.Letters = append([]JobLetter(nil), list...)
}

// forgetLetters forgets the outcomes of a job that ended some time ago.
func (j *job) forgetLetters(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.state.Ended.IsZero() && now.Sub(j.state.Ended) > askedWithin {
		j.letters.last = nil
	}
}

// FollowJob waits for the end of a job, and returns its last state. each gets the outcomes of its letters as they come,
// and the counts so far; skipped is how many outcomes before this one the process no longer knew. If ctx ends,
// FollowJob cancels the job, waits until it has ended its current letter, and returns the error of ctx.
func FollowJob(ctx context.Context, c *Client, j Job, each func(l JobLetter, now Job, skipped int)) (Job, error) {
	name, asking, cancelled := JobName{Job: j.Job, Letters: true}, ctx, false
	for {
		next, err := Ask(asking, c, DeadJob, name)
		var refused *Error
		if errors.As(err, &refused) && refused.Code == http.StatusBadRequest && name.Letters {
			name = JobName{Job: j.Job} // a process of an earlier release
			continue
		}
		switch {
		case ctx.Err() != nil && !cancelled:
			var stop context.CancelFunc
			asking, stop = context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
			defer stop()
			cancelled = true
			if _, err := Ask(asking, c, DeadCancel, JobName{Job: j.Job}); err != nil {
				return j, errors.Join(ctx.Err(), err)
			}
			continue
		case err != nil:
			return j, errors.Join(ctx.Err(), err)
		}
		j = next
		skipped := max(0, j.Seen-name.Seen-len(j.Letters))
		for _, l := range j.Letters {
			each(l, j, skipped)
			skipped = 0
		}
		name.Seen = max(name.Seen, j.Seen)
		if j.State != "running" {
			return j, ctx.Err()
		}
		select {
		case <-asking.Done():
		case <-time.After(jobPoll):
		}
	}
}
