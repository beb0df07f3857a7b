package isolates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// call is something a run asked of the world: a subrequest or a send. Its answer is posted to the thread.
type call struct {
	id     float64
	cancel context.CancelFunc
	start  func() // of a subrequest that waits for its turn
}

// register makes a call of r, unless the run has too many.
func (r *run) register(id float64) *call {
	if r.calls == nil {
		r.calls = map[float64]*call{}
	}
	c := &call{id: id}
	r.calls[id] = c
	return c
}

// answer brings the answer of call c into the run's JavaScript, from any goroutine. last says that
// nothing follows. An answer that comes too late reaches nothing.
func (t *thread) answer(r *run, c *call, last bool, encode func(*v8x.Call) []byte) {
	t.post(func(t *thread) {
		if r.over || r.calls[c.id] != c {
			return
		}
		if last {
			delete(r.calls, c.id)
		}
		body := encode(&t.call)
		t.turn(r, t.call.Bytes(), body)
	})
}

// request is a subrequest as JavaScript sent it.
type request struct {
	method, url, redirect string
	headers               []string
	body                  []byte
}

// fetch starts a subrequest, or queues it behind those under way.
func (t *thread) fetch(r *run, in *v8x.Commands) {
	c := r.register(in.Number())
	q := request{method: in.Text(), url: in.Text(), headers: in.Strings(), body: slices.Clone(in.View())}
	q.redirect = in.Text()
	limit := r.limits.Subrequests
	if r.made++; r.made > limit {
		t.answer(r, c, true, fetchFailed(c, fmt.Errorf("too many subrequests: at most %d per event", limit)))
		return
	}
	ctx, cancel := context.WithCancel(r.context())
	c.cancel = cancel
	c.start = func() { go t.perform(ctx, cancel, r, c, q) }
	if r.active >= maxConcurrent {
		r.queued = append(r.queued, c)
		return
	}
	r.active++
	c.start()
}

// ended lets the next queued subrequest go. On the thread.
func (t *thread) ended(r *run) {
	r.active--
	for len(r.queued) > 0 {
		next := r.queued[0]
		r.queued = r.queued[1:]
		if r.calls[next.id] == next { // not aborted meanwhile
			r.active++
			next.start()
			return
		}
	}
}

// perform does the subrequest, in a goroutine of its own.
func (t *thread) perform(ctx context.Context, cancel context.CancelFunc, r *run, c *call, q request) {
	defer cancel()
	defer t.post(func(t *thread) { t.ended(r) })
	if err := t.exchange(ctx, r, c, q); err != nil {
		t.answer(r, c, true, fetchFailed(c, err))
	}
}

// exchange sends the request and passes on the response: its head, then its body in chunks.
func (t *thread) exchange(ctx context.Context, r *run, c *call, q request) error {
	hr, err := http.NewRequestWithContext(ctx, q.method, q.url, bytes.NewReader(q.body))
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(q.headers); i += 2 {
		if strings.EqualFold(q.headers[i], "host") {
			continue
		}
		hr.Header.Add(q.headers[i], toBytes(q.headers[i+1]))
	}
	addDefaults(hr.Header)
	resp, redirected, err := t.pool.fetcher.do(hr, q.redirect)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var headers []string
	for name, values := range resp.Header {
		for _, v := range values {
			headers = append(headers, strings.ToLower(name), fromBytes(v))
		}
	}
	_, statusText, _ := strings.Cut(resp.Status, " ")
	t.answer(r, c, false, func(call *v8x.Call) []byte {
		call.Reset(opResponse).Number(c.id).Number(float64(resp.StatusCode)).String(statusText).
			String(resp.Request.URL.String()).Strings(headers).Bool(redirected)
		return nil
	})
	return t.passBody(r, c, resp.Body)
}

// addDefaults adds what the Fetch standard sends where the handler says nothing.
func addDefaults(h http.Header) {
	for _, pair := range [][2]string{{"User-Agent", "Pinwheel"}, {"Accept", "*/*"}, {"Accept-Language", "*"}} {
		if h.Get(pair[0]) == "" {
			h.Set(pair[0], pair[1])
		}
	}
}

func (t *thread) passBody(r *run, c *call, body io.Reader) error {
	buffer := make([]byte, 64<<10)
	for total := 0; ; {
		n, err := body.Read(buffer)
		if total += n; total > maxResponseBody {
			return fmt.Errorf("response body is longer than %d bytes", maxResponseBody)
		}
		if n > 0 {
			chunk := slices.Clone(buffer[:n])
			t.answer(r, c, false, func(call *v8x.Call) []byte {
				call.Reset(opChunk).Number(c.id).Body()
				return chunk
			})
		}
		if errors.Is(err, io.EOF) {
			t.answer(r, c, true, func(call *v8x.Call) []byte {
				call.Reset(opChunk).Number(c.id).Null()
				return nil
			})
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func fetchFailed(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opFetchFailed).Number(c.id).String("fetch failed: " + err.Error())
		return nil
	}
}

// enqueue stores a task for another worker of the owner.
func (t *thread) enqueue(r *run, in *v8x.Commands) {
	c := r.register(in.Number())
	worker := in.Text()
	m := Message{Body: slices.Clone(in.View()), ContentType: in.Text(), Headers: in.Strings()}
	owner := r.attempt.Worker.Owner
	ctx := r.context()
	go func() {
		err := events.CheckName("worker", worker)
		if err == nil {
			err = t.pool.host.Enqueue(ctx, owner, worker, m)
		}
		t.answer(r, c, true, func(call *v8x.Call) []byte {
			call.Reset(opQueued).Number(c.id)
			if err != nil {
				call.String(err.Error())
			} else {
				call.Null()
			}
			return nil
		})
	}()
}
