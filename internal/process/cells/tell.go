package cells

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// What a cell tells about calls, threads, lines and spans.

// takeCalling passes on that an attempt calls a service, or that a call is over.
func (c *receiver) takeCalling(r *wire.Reader) error {
	x, err := c.attempt(r)
	is := r.Bool()
	if err != nil || x == nil || r.Err() != nil {
		return err
	}
	switch {
	case is && x.calls >= events.MaxServiceCalls: // more than at once: a thread learns late that calls are over
		return fmt.Errorf("an attempt has more than %d calls of services under way", events.MaxServiceCalls)
	case is:
		x.calls++
	case x.calls == 0:
		return errors.New("a call of a service is over that did not begin")
	default:
		x.calls--
	}
	c.pools.dispatch.Calling(x.attempt, is)
	return nil
}

// takeOverstays passes on that a turn of a worker continues although it was told to end, or that this is over.
func (c *receiver) takeOverstays(r *wire.Reader) error {
	w, err := c.worker(r)
	is := r.Bool()
	if err != nil || r.Err() != nil {
		return err
	}
	switch {
	case is && c.overstay[w] >= mostTurns:
		return fmt.Errorf("a worker has more than %d turns", mostTurns)
	case is:
		c.overstay[w]++
	case c.overstay[w] == 0:
		return errors.New("a turn has ended that did not overstay")
	default:
		c.overstay[w]--
	}
	c.pools.dispatch.Overstays(w, is)
	return nil
}

const (
	mostTurns = 1000 // of a worker that overstay; isolates has fewer
	mostLost  = 1000 // threads that a cell loses before it is replaced; isolates gives up before that
)

// takeLost passes on that a thread is lost to a worker.
func (c *receiver) takeLost(r *wire.Reader) error {
	w, err := c.worker(r)
	began := r.Time()
	if err != nil || r.Err() != nil {
		return err
	}
	if c.lost++; c.lost > mostLost {
		return fmt.Errorf("more than %d threads are lost", mostLost)
	}
	if began.Before(c.began) {
		began = c.began
	}
	if now := time.Now(); began.After(now) {
		began = now
	}
	c.pools.dispatch.Lost(w, began)
	return nil
}

// has returns an error unless the cell was given the worker.
func (c *receiver) has(owner, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.given.has(owner, name) {
		return fmt.Errorf("the cell runs no worker %.40q of the owner %.40q", name, owner)
	}
	return nil
}

// mostLine is how many bytes a line of output may have as JSON: as much as a run may write at all, each byte escaped,
// and what the fleet says of it.
var mostLine = 6*workers.MaxLimits.LogBytes + 128<<10

// takeLog passes on a line of output. Lines beyond the bound of a cell are dropped.
func (c *receiver) takeLog(r *wire.Reader) error {
	text := r.Bytes()
	if r.Err() != nil {
		return nil // Receive says why
	}
	var line events.LogLine
	if len(text) > mostLine {
		return fmt.Errorf("a line of output has %d bytes: at most %d", len(text), mostLine)
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	if err := c.has(line.Owner, line.Worker); err != nil {
		return err
	}
	if !slices.Contains(events.LogLevels, line.Level) {
		return fmt.Errorf("a line of output has the level %.20q", line.Level)
	}
	if !c.output.AllowN(time.Now(), len(text)) {
		c.pools.metrics.dropped.Add(1)
		return nil
	}
	if late := time.Since(line.Time); late < 0 || late > time.Minute { // dashboards sort by it
		line.Time = time.Now()
	}
	c.pools.host.Log(line)
	return nil
}

// takeSpan passes on an operation of an attempt that is over.
func (c *receiver) takeSpan(r *wire.Reader) error {
	x, err := c.attempt(r)
	text := r.Bytes()
	var s wire.SentSpan
	if err == nil && r.Err() == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && r.Err() == nil {
		err = checkSpan(&s)
	}
	if err != nil || r.Err() != nil || x == nil || x.attempt.Trace == nil || !c.output.AllowN(time.Now(), len(text)) {
		return err
	}
	x.attempt.Trace.Record(s.Operation, s.Past)
	return nil
}

// checkSpan returns an error for an operation that no cell sends. The broker makes the spans of bindings and services.
// Readers of traces rely on the worker that tasks are sent to being a name.
func checkSpan(s *wire.SentSpan) error {
	switch s.Kind {
	case lifecycle.Subrequest, lifecycle.FileRequest:
		if s.To != "" {
			return fmt.Errorf("a request has gone to the worker %.40q", s.To)
		}
	case lifecycle.SendTasks:
		if s.To != "" {
			return events.CheckName("worker", s.To)
		}
	default:
		return fmt.Errorf("a cell sends no span of kind %d", s.Kind)
	}
	return nil
}

// takeUnhealthy has the cell replaced.
func (c *receiver) takeUnhealthy(r *wire.Reader) error {
	why := events.Clip(r.Text(), 200)
	if err := r.Done(); err != nil {
		return err
	}
	c.mu.Lock()
	first := c.phase == serving
	c.mu.Unlock()
	if !first {
		return nil // it may say so often
	}
	c.pools.log.Error().Str("class", c.class.name).Str("why", why).Msg("a cell is replaced")
	c.replace()
	return nil
}

// questions are what a broker has asked a cell, by number. cell.mu guards them.
type questions struct {
	last uint64
	of   map[uint64]chan []byte
}

var errNoAnswer = errors.New("the cell does not answer")

// answerWithin is how long a cell may take to answer. People and metrics wait for it.
const answerWithin = 2 * time.Second

// ask asks the cell. Any goroutine may call it.
func (c *cell) ask(what string) ([]byte, error) {
	answer := make(chan []byte, 1)
	c.mu.Lock()
	if c.asked.of == nil {
		c.asked.of = map[uint64]chan []byte{}
	}
	c.asked.last++
	number := c.asked.last
	c.asked.of[number] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked.of, number)
		c.mu.Unlock()
	}()
	f := c.conn.Begin(wire.Ask)
	f.Uint(number)
	f.Text(what)
	c.conn.End()
	c.conn.Flush()
	select {
	case got := <-answer:
		return got, nil
	case <-c.over: // its end does not wait for an answer
	case <-time.After(answerWithin):
	}
	return nil, errNoAnswer
}

// takeAnswer takes an answer. One that comes too late is ignored.
func (c *receiver) takeAnswer(r *wire.Reader) error {
	number, answer := r.Uint(), append([]byte(nil), r.Bytes()...)
	if r.Err() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if number > c.asked.last || number == 0 {
		return errors.New("an answer to a question that was not asked")
	}
	if to := c.asked.of[number]; to != nil {
		delete(c.asked.of, number)
		to <- answer
	}
	return nil
}

// end passes on what is left, and says that the turns that overstay are over.
func (c *receiver) end() {
	c.passOn()
	for w, n := range c.overstay {
		for range n {
			c.pools.dispatch.Overstays(w, false)
		}
	}
}
