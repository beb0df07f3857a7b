package consumer

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// wordsPerSecond and wordsAtOnce bound what is told of an owner's events.
	wordsPerSecond = 5
	wordsAtOnce    = 20
)

// lastWords tells in a worker's output of events that ended without a run, or whose reply was too large, as isolates does of those that failed in a run. Owners share a fixed
// number of limits. It belongs to the settle goroutine.
type lastWords struct {
	limits [64]*rate.Limiter
	untold [64]int
}

// word is a line of a worker's output (docs/wire.md).
type word struct {
	Time    time.Time `json:"time"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Version string    `json:"version"`
	EventID string    `json:"eventId,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Level   string    `json:"level"`
	Text    string    `json:"text"`
}

// lastWord tells why an event ended, if it did so without a run.
func (c *Consumer) lastWord(e *events.Event, o events.Outcome) {
	if o.Failure == nil || o.Version != "" || o.Verdict != events.Ack && o.Verdict != events.Dead {
		return
	}
	c.say(e, "", "not run: "+o.Failure.Error())
}

// tooLarge tells of a reply that was replaced by r, which says so. The run itself has not failed, and nothing else tells its author.
func (c *Consumer) tooLarge(e *events.Event, r *events.Reply) {
	c.say(e, r.Version, "failed: "+r.Failure.Error()+"; whoever waits was told that in its place, and the event is not run again")
}

// say puts a line into the output of e's worker, at the level error, unless its owner has too many of them.
func (c *Consumer) say(e *events.Event, version, text string) {
	if !events.ValidName(e.Owner) || !events.ValidName(e.Worker) {
		return // nobody's output
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(e.Owner))
	w, i, now := &c.words, hash.Sum32()%uint32(len(c.words.limits)), time.Now()
	if w.limits[i] == nil {
		w.limits[i] = rate.NewLimiter(wordsPerSecond, wordsAtOnce)
	}
	if !w.limits[i].AllowN(now, 1) {
		w.untold[i]++
		return
	}
	if w.untold[i] > 0 {
		text += fmt.Sprintf(" (%d such lines before were left out)", w.untold[i])
		w.untold[i] = 0
	}
	line, err := json.Marshal(word{Time: now, Owner: e.Owner, Worker: e.Worker, Version: version, EventID: e.ID, Attempt: e.Attempt, Level: "error", Text: text})
	if err == nil {
		err = c.nc.Publish(c.cfg.Prefix.Logs(e.Owner, e.Worker), line)
	}
	if err != nil {
		c.log.Debug().Err(err).Str("worker", e.Target()).Msg("log line lost")
	}
}
