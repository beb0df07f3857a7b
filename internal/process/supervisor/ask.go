package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Answer is the answer of a child.
type Answer struct {
	Err    error // why there is no answer
	Status int
	Header http.Header
	Body   []byte
}

const (
	askTimeout = 2 * time.Second // also enough for a busy child: /metrics takes milliseconds
	maxAnswer  = 64 << 20        // bytes
)

func newClient(socket string) *http.Client {
	return &http.Client{Timeout: askTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		MaxIdleConns: 2, IdleConnTimeout: time.Minute,
	}}
}

// Ask sends a GET of path to all children at once. The answers are in the order of the children's numbers. accept is
// the Accept header; empty: none.
func (s *Supervisor) Ask(ctx context.Context, path, accept string) []Answer {
	answers := make([]Answer, len(s.children))
	var asking sync.WaitGroup
	for i, c := range s.children {
		asking.Go(func() { answers[i] = c.ask(ctx, path, accept) })
	}
	asking.Wait()
	return answers
}

// First sends a GET of path to one child after the other, until one answers with 200, and returns its body. The error
// is that of the first child when none does.
func (s *Supervisor) First(ctx context.Context, path string) (body []byte, err error) {
	for _, c := range s.children {
		a := c.ask(ctx, path, "")
		bad := a.bad(c.index)
		if bad == nil {
			return a.Body, nil
		}
		err = cmp.Or(err, bad)
	}
	return nil, err
}

// ask asks the process of a child. If another one takes its place meanwhile, what it answers counts: the first may end.
func (c *child) ask(ctx context.Context, path, accept string) Answer {
	p := c.current.Load()
	if p == nil {
		return Answer{Err: errors.New("not running")}
	}
	for {
		a := p.ask(ctx, path, accept)
		next := c.current.Load()
		if next == nil || next == p || a.bad(c.index) == nil {
			return a
		}
		p = next
	}
}

func (p *process) ask(ctx context.Context, path, accept string) Answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://process"+path, nil)
	if err != nil {
		return Answer{Err: err}
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return Answer{Err: err, Status: resp.StatusCode, Header: resp.Header, Body: body}
}

// bad returns what is wrong with the answer of the child with that number. It is nil for 200.
func (a Answer) bad(process int) error {
	switch {
	case a.Err != nil:
		return fmt.Errorf("process %d: %w", process, a.Err)
	case a.Status != http.StatusOK:
		line, _, _ := bytes.Cut(a.Body, []byte("\n"))
		return fmt.Errorf("process %d: %s", process, line)
	}
	return nil
}
