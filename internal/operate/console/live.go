package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

const (
	maxStreams = 64
	// writeTime is how long a browser may take to receive a part. One that takes longer is gone.
	writeTime = 10 * time.Second
	// pingEvery is how often a stream without news says that it is there.
	pingEvery = 15 * time.Second
	// hourLater is how long after the end of a minute the page Flow asks for it: by then all processes have it.
	hourLater = 3 * time.Second
)

// streams bounds the streams of server-sent events, and ends them with the console.
type streams struct {
	slots     chan struct{}
	life      context.Context //nolint:containedctx // ends all streams
	close     context.CancelFunc
	writeTime time.Duration
}

func newStreams() *streams {
	s := &streams{slots: make(chan struct{}, maxStreams), writeTime: writeTime}
	s.life, s.close = context.WithCancel(context.Background())
	return s
}

// stream is one response of server-sent events.
type stream struct {
	ctx context.Context //nolint:containedctx // done when the browser has left, or the console ends
	rc  *http.ResponseController
	// writeTime is how long a write may take.
	writeTime time.Duration

	mu sync.Mutex // of w
	w  http.ResponseWriter
}

// parts is what a stream replaces in a page: HTML by the ID of its element.
type parts map[string]string

// run answers a request with a stream, and calls send with it until the browser leaves.
func (l *streams) run(w http.ResponseWriter, r *http.Request, send func(*stream) error) error {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return &control.Error{Code: http.StatusServiceUnavailable,
			Text: fmt.Sprintf("%d pages follow the fleet already, and no more at once", maxStreams)}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	s := &stream{ctx: ctx, rc: http.NewResponseController(w), w: w, writeTime: l.writeTime}
	if err := errors.Join(s.rc.SetReadDeadline(time.Time{}), s.rc.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for the end
	var pinging sync.WaitGroup
	defer pinging.Wait()
	defer cancel()
	pinging.Go(func() { s.ping(cancel) })
	if err := send(s); err != nil && ctx.Err() == nil {
		_ = s.send("failed", failureOf(err).Text)
	}
	return nil
}

// ping finds browsers that are gone without a word.
func (s *stream) ping(gone func()) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		if err := s.write(": here\n\n"); err != nil {
			gone()
			return
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// send sends an event. Its data is JSON, which has no line breaks.
func (s *stream) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write("event: " + event + "\ndata: " + string(text) + "\n\n")
}

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

// liveFlow sends the parts of the page Flow after each look at the fleet.
func liveFlow(c *call) (*page, error) {
	return nil, c.live.run(c.w, c.http, func(s *stream) error {
		shown := time.Now().Truncate(time.Minute)
		for n := 0; ; {
			state, err := c.watcher.after(s.ctx, n)
			if err != nil {
				return err
			}
			n = state.Number
			names, f := []string{"flow-rates", "flow-processes", "flow-owners", "flow-workers"}, flowPage{sampled: state}
			if now := time.Now().Add(-hourLater).Truncate(time.Minute); now.After(shown) {
				shown, f.Hour = now, hourOf(s.ctx, c.fleet(), "")
				names = append(names, "flow-hour")
			}
			p, err := c.views.parts(c.session, f, names...)
			if err == nil {
				err = s.send("parts", p)
			}
			if err != nil {
				return err
			}
		}
	})
}

// parts renders templates whose names are also the IDs of their elements.
func (v *views) parts(s session, data any, names ...string) (parts, error) {
	p := parts{}
	for _, name := range names {
		html, err := v.render(name, view{session: s, Data: data})
		if err != nil {
			return nil, err
		}
		p[name] = string(html)
	}
	return p, nil
}

// liveTail sends log lines and ended events of an owner.
func liveTail(c *call) (*page, error) {
	r := c.tailOf()
	if r.Owner == "" {
		return nil, &control.Error{Code: http.StatusBadRequest, Text: "owner is missing: a tail is of one owner"}
	}
	return nil, c.live.run(c.w, c.http, func(s *stream) error {
		return c.fleet().Follow(s.ctx, r, func(e *tail.Entry) error {
			html, err := c.views.render("tail-entry", e)
			if err != nil {
				return err
			}
			return s.send("line", string(html))
		}, func(err error) { _ = s.send("failed", failureOf(err).Text) })
	})
}

// liveJob sends the progress of a job until it has ended, or, when it had ended before, until the events that it sent
// again have.
func liveJob(c *call) (*page, error) {
	name := c.jobName()
	return nil, c.live.run(c.w, c.http, func(s *stream) error {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for running := false; ; {
			j, err := progressOf(s.ctx, c.fleet(), name)
			if err != nil {
				return err
			}
			p, err := c.views.parts(c.session, j, "job-progress")
			if err == nil {
				err = s.send("parts", p)
			}
			switch running = running || j.Running(); {
			case err != nil:
				return err
			case running && !j.Running():
				return s.send("ended", j.State)
			case !j.Follows():
				return s.send("over", j.State)
			}
			select {
			case <-tick.C:
			case <-s.ctx.Done():
				return nil
			}
		}
	})
}
